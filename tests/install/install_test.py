#!/usr/bin/python3
"""Installs a build, and uses it as others do: through find_package, through pkg-config, as a Debian
package, and (--subdirectory) as a part of another project's own build."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}\n{done.stdout}")
    return done.stdout.strip()


def expect_runs(program, scratch, environment=None):
    path = scratch / "x.shale"
    path.unlink(missing_ok=True)
    printed = run(program, path, env=environment)
    if printed != "15":
        sys.exit(f"{program} printed {printed!r}, not '15'")


def cmake_consumer(scratch, compiler, *settings):
    build = scratch / "build"
    run("cmake", "-G", "Ninja", "-S", HERE / "consumer", "-B", build, "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_CXX_COMPILER={compiler}", *settings)
    run("cmake", "--build", build, "--target", "consumer")
    expect_runs(build / "consumer", scratch)


def pkg_config_consumer(scratch, prefix, compiler):
    found = list(prefix.rglob("shale.pc"))
    environment = dict(os.environ, PKG_CONFIG_PATH=str(found[0].parent),
                       LD_LIBRARY_PATH=str(found[0].parent.parent))
    flags = run("pkg-config", "--cflags", "--libs", "shale", env=environment).split()
    program = scratch / "by-pkg-config"
    run(compiler, HERE / "consumer/consumer.cpp", "-o", program, *flags)
    expect_runs(program, scratch, environment)


def debian_consumer(scratch, build, compiler):
    """The package that CPack makes, unpacked where nothing of it is installed."""
    folder, root = scratch / "package", scratch / "root"
    run("cpack", "-G", "DEB", "--config", build / "CPackConfig.cmake", "-B", folder)
    packages = list(folder.glob("*.deb"))
    if len(packages) != 1:
        sys.exit(f"cpack made {len(packages)} packages")
    needed = run("dpkg-deb", "--field", packages[0], "Depends")
    for library in ("libtbb12", "libzstd1", "liblz4-1", "libc6"):
        if library not in needed:
            sys.exit(f"{packages[0].name} does not depend on {library}, only on: {needed}")
    run("dpkg-deb", "--extract", packages[0], root)
    if list(root.rglob("libshale.a")) and "libtbb-dev" not in needed:
        sys.exit(f"{packages[0].name} has a static library, and depends only on: {needed}")
    run(root / "usr/bin/shale", "version",
        env=dict(os.environ, LD_LIBRARY_PATH=str(root / "usr/lib")))
    scratch = scratch / "debian"
    scratch.mkdir()
    cmake_consumer(scratch, compiler, f"-DCMAKE_PREFIX_PATH={root / 'usr'}")


def expect_public_symbols_only(prefix):
    """A shared libshale shows the symbols of its public headers and nothing of its inside."""
    for library in prefix.rglob("libshale.so"):
        # "address kind name"
        symbols = [line.split(" ", 2)[2] for line in
                   run("nm", "-DC", "--defined-only", library).splitlines()]
        for inside in ("shale::parallel::", "shale::format::", "shale::arrays::", "shale::interop::",
                       "ZSTD_", "cblas_"):
            shown = [symbol for symbol in symbols if symbol.startswith(inside)]
            if shown:
                sys.exit(f"{library} shows {len(shown)} symbols of its inside, as {shown[0]}")
        if not any(symbol.startswith("shale::container::create") for symbol in symbols):
            sys.exit(f"{library} does not show shale::container::create")


def expect_stays_loaded(prefix):
    """dlclose does not unload a shared libshale under its threads and its signal handler."""
    for library in prefix.rglob("libshale.so"):
        if "NODELETE" not in run("readelf", "--dynamic", "--wide", library):
            sys.exit(f"{library} can be unloaded while its threads run")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--subdirectory", action="store_true",
                        help="builds the library again as a part of the consumer")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shale-install-") as folder:
        scratch = pathlib.Path(folder)
        if given.subdirectory:
            cmake_consumer(scratch, given.compiler, f"-DSHALE_SOURCE={given.source.resolve()}")
            return
        prefix = scratch / "prefix"
        run("cmake", "--install", given.build, "--prefix", prefix)
        cmake_consumer(scratch, given.compiler, f"-DCMAKE_PREFIX_PATH={prefix}")
        run(prefix / "bin/shale", "version", env=dict(os.environ, LD_LIBRARY_PATH=str(prefix / "lib")))
        expect_public_symbols_only(prefix)
        expect_stays_loaded(prefix)
        pkg_config_consumer(scratch, prefix, given.compiler)
        debian_consumer(scratch, given.build.resolve(), given.compiler)


if __name__ == "__main__":
    main()
