"""`python -m tests.golden.record [FILE…]`: record golden files again, all or those that are named.

Say in the commit which requirement demands the change.
"""

import sys

from tests.golden.contracts import DOCUMENTS
from tests.golden.files import RECORDED, write


def main() -> None:
    for name in sys.argv[1:] or DOCUMENTS:
        write(RECORDED / name, DOCUMENTS[name]())


if __name__ == "__main__":
    main()
