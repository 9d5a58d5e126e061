"""`skerry secret`: make the file by which the members of a cluster without TLS know each other."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from skerry.config import Config, load
from skerry.config.private import all_run_here, make_secret, read_secret
from skerry.model.errors import SkerryError

_KEY_BYTES = 32


@click.command("secret")
@click.argument("file", default="skerry.yaml", type=click.Path(dir_okay=False, path_type=Path))
def secret(file: Path) -> None:
    """Make the secret of the cluster in FILE (default: skerry.yaml), if there is none yet.

    Copy it to every host of the cluster: whoever has it can be any member.
    """
    try:
        config = load(str(file))
        if not config.secret:
            raise click.ClickException(f"{file}: members prove themselves by TLS; secret: names a file to ask for too")
        is_new = make_secret(config.secret, secrets.token_hex(_KEY_BYTES))
        read_secret(config.secret)
    except SkerryError as error:
        raise click.ClickException("\n".join(filter(None, (error.message, error.suggestion)))) from error
    click.echo(f"{config.secret}: {'made' if is_new else 'was there already'}; copy it to every host of the cluster")


def ensure_secret(config: Config, *, all_start_here: bool) -> None:
    """Make the secret if no other host needs it: nobody has to do that by hand then."""
    if config.secret and (all_start_here or all_run_here(config)):
        make_secret(config.secret, secrets.token_hex(_KEY_BYTES))
