"""`audit:` in skerry.yaml: where it is said who asked for what."""

from __future__ import annotations

import os

from skerry.config import rules
from skerry.config.limits import read_bytes
from skerry.config.yaml_nodes import Fields
from skerry.model.config import AuditConfig
from skerry.model.limits import AUDIT_KEEP_MAX, AUDIT_ROTATE_LEAST

AUDIT = ("path", "statements", "required", "rotate_bytes", "keep")


def read_audit(top: Fields, base_dir: str) -> AuditConfig | None:
    item = top.get("audit")
    if item is None:
        return None
    fields = item.fields(AUDIT, required=("path",))
    path = fields.text("path", rules.local_path, "")
    required, rotate, keep = fields.get("required"), fields.get("rotate_bytes"), fields.get("keep")
    usual = AuditConfig("")
    return AuditConfig(
        path=os.path.abspath(os.path.join(base_dir, path)),
        statements=fields.text("statements", rules.audited_statements, usual.statements),
        is_required=required.flag() if required else usual.is_required,
        rotate_bytes=read_bytes(rotate, AUDIT_ROTATE_LEAST, 2**63 - 1) if rotate else usual.rotate_bytes,
        keep=keep.whole(1, AUDIT_KEEP_MAX) if keep else usual.keep,
    )
