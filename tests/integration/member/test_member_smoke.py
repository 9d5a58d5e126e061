import pytest
from tests.integration.member.member_sites import *
@pytest.mark.spark
def test_smoke(members):
    import time
    con = members.connect("bergen")
    cur = con.cursor()
    for q in ["SELECT count(*) FROM ticks", "SELECT count(*) FROM oslo.few", "SELECT a.id, b.name from oslo.ticks a join bergen.few b on a.id=b.id", "SELECT id from ticks order by id"]*2:
        t=time.time()
        r = cur.execute(q).fetchall()
        print(q, len(r), r[:2], time.time()-t)
    for site in SITES:
        t=time.time()
        with pytest.raises(Exception) as e:
            cur.execute(slow_query(site), timeout_s=3)
        print(e, time.time()-t)
        nothing_left(members)
        print(time.time()-t)
