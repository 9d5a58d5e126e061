"""Every ordering of what can happen to one cursor, as a table: what the member answers.

E execute, F fetch of page 1, C close, D the connection of the execute ends, A attach. What comes after D comes over
another connection. The answers are given in the order E, F (or A); a close is always answered.
"""

from __future__ import annotations

# Without a lease: the connection's end ends the query.
PLAIN: dict[str, tuple[str, str]] = {
    "EFCD": ("page", "page"),
    "EFDC": ("page", "page"),
    "ECFD": ("page", "cancelled"),
    "ECDF": ("page", "cancelled"),
    "EDFC": ("page", "cancelled"),
    "EDCF": ("page", "cancelled"),
    "FECD": ("page", "cancelled"),
    "FEDC": ("page", "cancelled"),
    "FCED": ("cancelled", "cancelled"),
    "FCDE": ("cancelled", "cancelled"),
    "FDEC": ("page", "cancelled"),
    "FDCE": ("cancelled", "cancelled"),
    "CEFD": ("cancelled", "cancelled"),
    "CEDF": ("cancelled", "cancelled"),
    "CFED": ("cancelled", "cancelled"),
    "CFDE": ("cancelled", "cancelled"),
    "CDEF": ("cancelled", "cancelled"),
    "CDFE": ("cancelled", "cancelled"),
    "DEFC": ("page", "page"),
    "DECF": ("page", "cancelled"),
    "DFEC": ("page", "cancelled"),
    "DFCE": ("cancelled", "cancelled"),
    "DCEF": ("cancelled", "cancelled"),
    "DCFE": ("cancelled", "cancelled"),
}
# With resume_s: it does not, until the lease is over; attaching works in between, also before the end was noticed.
LEASED: dict[str, tuple[str, str]] = {
    "EACD": ("page", "page"),
    "EADC": ("page", "page"),
    "ECAD": ("page", "cancelled"),
    "ECDA": ("page", "cancelled"),
    "EDAC": ("page", "page"),
    "EDCA": ("page", "cancelled"),
    "AECD": ("page", "cancelled"),
    "AEDC": ("page", "cancelled"),
    "ACED": ("cancelled", "cancelled"),
    "ACDE": ("cancelled", "cancelled"),
    "ADEC": ("page", "cancelled"),
    "ADCE": ("cancelled", "cancelled"),
    "CEAD": ("cancelled", "cancelled"),
    "CEDA": ("cancelled", "cancelled"),
    "CAED": ("cancelled", "cancelled"),
    "CADE": ("cancelled", "cancelled"),
    "CDEA": ("cancelled", "cancelled"),
    "CDAE": ("cancelled", "cancelled"),
    "DEAC": ("page", "page"),
    "DECA": ("page", "cancelled"),
    "DAEC": ("page", "cancelled"),
    "DACE": ("cancelled", "cancelled"),
    "DCEA": ("cancelled", "cancelled"),
    "DCAE": ("cancelled", "cancelled"),
}
