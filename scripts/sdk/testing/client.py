import json
import os
import re
import ssl

from isthmus_client import AuthenticatedClient
from isthmus_client.api.clusters import list_clusters
from isthmus_client.api.peerings import change_peering, create_peering, get_peering
from isthmus_client.models import ChangePeeringBody, CreatePeeringBody, CreatePeeringResponseDefaultCode
from isthmus_client.types import UNSET

client = AuthenticatedClient(
    base_url=os.environ["BROKER_URL"],
    token=os.environ["BROKER_KEY"],
    verify_ssl=ssl.create_default_context(cafile=os.environ["BROKER_CA"]),
)
pair = {"consumer": "rome", "provider": "milan", "resources": {"cpu": "1"}}
made = create_peering.sync_detailed(client=client, body=CreatePeeringBody.from_dict(pair))
names, cursor = [], UNSET
while True:
    page = list_clusters.sync(client=client, limit=1, cursor=cursor)
    names += [cluster.name for cluster in page.items]
    cursor = page.cursor
    if cursor is UNSET:
        break
read = get_peering.sync_detailed(made.parsed.id, client=client)
labels = ChangePeeringBody.from_dict({"labels": {"team": "a"}})
stale = change_peering.sync_detailed(made.parsed.id, client=client, body=labels, if_match='"999"')
refused = create_peering.sync_detailed(
    client=client, body=CreatePeeringBody.from_dict({**pair, "provider": "nowhere"})
)
print(
    json.dumps(
        {
            "made": made.status_code,
            "names": sorted(names),
            "etag": re.fullmatch(r'"\d+"', read.headers["etag"]) is not None,
            "stale": [stale.status_code, stale.parsed.code],
            "refused": [refused.status_code, refused.parsed.code],
            "unknown": refused.parsed.code == CreatePeeringResponseDefaultCode.CLUSTER_UNKNOWN,
        }
    )
)
