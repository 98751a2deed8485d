"""The pages of client code in examples/, run on small data and compared with NumPy."""
import argparse
import pathlib
import subprocess
import tempfile

import numpy as np

SIDE = 256  # of the simulation's plate


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, (command, done.returncode, done.stderr)
    return done.stdout


def array_of(shale, container, name, folder):
    target = folder / f"{name}.npy"
    run(shale, "convert", f"{container}:{name}", target, "-f", "-q")
    return np.load(target)


def seismic(build, folder):
    container = folder / "survey.shale"
    inlines = 12
    text = run(build / "examples/seismic", container, inlines)
    assert "stored" in text, text

    inline, crossline, sample = np.ogrid[:inlines, :1024, :512]
    depth = 200 + 40 * np.sin(inline / 90) * np.cos(crossline / 70)
    volume = np.exp(-((sample - depth) / 6) ** 2) * np.cos((sample - depth) / 2) + 3
    centred = volume - volume.mean(axis=2, keepdims=True)
    smooth = (centred[:, :, :-2] + 2 * centred[:, :, 1:-1] + centred[:, :, 2:]) / 4
    shale = build / "tools/shale"
    for name, wanted, close in (("amplitude", volume, 1e-4), ("filtered", smooth, 1e-4),
                                ("rms", np.sqrt((smooth**2).mean(axis=2)), 1e-4),
                                ("peak", np.abs(smooth).max(axis=2), 1e-4)):
        got = array_of(shale, container, name, folder)
        assert got.dtype == np.float32 and got.shape == wanted.shape, (name, got.dtype, got.shape)
        assert np.abs(got - wanted).max() < close, (name, np.abs(got - wanted).max())


def simulation(build, folder):
    container = folder / "heat.shale"
    steps = 20
    program = build / "examples/simulation"
    runner = subprocess.Popen([str(program), "run", str(container), str(steps)])
    try:
        while not container.exists():
            assert runner.poll() in (None, 0)
        seen = run(program, "watch", container).splitlines()
        assert runner.wait(timeout=200) == 0
    finally:
        runner.kill()
        runner.wait()

    plate = np.zeros((SIDE, SIDE), np.float32)
    plate[100:150, 30:80] = 1000
    means = []
    for _ in range(steps):
        plate[1:-1, 1:-1] = (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]) / 4
        means.append(plate.mean(dtype=np.float64))
    got = array_of(build / "tools/shale", container, "plate", folder)
    assert np.abs(got[-1] - plate).max() < 1e-3
    # The viewer may miss steps, and sees each of those that it sees whole.
    assert seen and seen[-1].startswith(f"step {steps}:"), seen
    for line in seen:
        number, rest = line[len("step "):].split(":")
        mean = float(rest.split()[1].rstrip(","))
        assert abs(mean - means[int(number) - 1]) < 1e-3, line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    build = parser.parse_args().build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        seismic(build, pathlib.Path(folder))
        simulation(build, pathlib.Path(folder))


main()
