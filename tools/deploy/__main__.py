"""Writes the folder ``deploy`` anew."""

from tools.deploy.write import DEPLOY, write_all

if __name__ == "__main__":
    write_all(DEPLOY)
    print(DEPLOY)
