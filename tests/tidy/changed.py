"""Which files of a repository changed: what is not committed, and what changed since a commit or in the
commits of the last day."""

import subprocess
import sys


def git(root, *arguments):
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed(root, since=None):
    """Absolute paths, the latest changes first; without `since`, those of the last commit and of the last
    day's commits."""
    names = git(root, "diff", "--name-only", "HEAD")
    names += git(root, "ls-files", "--others", "--exclude-standard")
    names += git(root, "log", "-1", "--name-only", "--format=")
    if since:
        if not git(root, "rev-parse", "--verify", "--quiet", since + "^{commit}"):
            sys.exit(f"no commit {since}")
        names += git(root, "diff", "--name-only", since, "HEAD")
    else:
        names += git(root, "log", "--since=1.day", "--name-only", "--format=")
    return [root / name for name in dict.fromkeys(names)]
