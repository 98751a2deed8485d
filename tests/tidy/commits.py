"""What the messages of commits look like."""

import re
import subprocess

SUBJECT_COLUMNS_MAX = 72

# It and the commits before it are as they are.
SUBJECTS_SINCE = "c3dab9522918bf3ed5ee3d9bc8371149f1b3f68c"


def subjects(house):
    """(abbreviated hash, subject) of the commits since SUBJECTS_SINCE. Of a history that ends before
    it, as a shallow clone's does, the last commit; nothing of a tree without history. Merges are left
    out: the merging program names them."""
    if not house.is_repository:
        return []
    try:
        lines = house.git("log", "--no-merges", "--format=%h %s", "HEAD", f"^{SUBJECTS_SINCE}")
        return [line.split(" ", 1) for line in lines.splitlines()]
    except subprocess.CalledProcessError:
        pass  # no such commit here
    try:
        # The commit as it is: where the clone ends, `git log` shows no parents of a merge.
        head, message = house.git("cat-file", "commit", "HEAD").split("\n\n", 1)
    except subprocess.CalledProcessError:
        return []  # nothing was committed yet
    is_merge = len(re.findall(r"^parent ", head, re.M)) > 1
    return [] if is_merge else [("HEAD", message.split("\n", 1)[0])]


def check_subjects(house):
    """Subjects of commits fit in a terminal's lines of `git log --oneline`."""
    for commit, subject in subjects(house):
        if len(subject) > SUBJECT_COLUMNS_MAX:
            house.add(f"commit {commit}", f"its subject has {len(subject)} columns, at most "
                                          f"{SUBJECT_COLUMNS_MAX} allowed: {subject}")
