/** The whole product on two real clusters, a broker and agents in pods: the same ones for every scenario, since starting them is what takes long. */
import { inOrder } from '#test/harness/in-order.ts';
import { openStage } from './open-stage.ts';
import { brokerDown } from './scenarios/broker-down.ts';
import { credentials } from './scenarios/credentials.ts';
import { crossing } from './scenarios/crossing.ts';
import { firstPeering } from './scenarios/first-peering.ts';
import { kubeletEndpoint } from './scenarios/kubelet-endpoint.ts';
import { oneProcess } from './scenarios/one-process.ts';
import { refusals } from './scenarios/refusals.ts';
import { remotePods } from './scenarios/remote-pods.ts';
import { unpeering } from './scenarios/unpeering.ts';
import { volumes } from './scenarios/volumes.ts';

/** While writing a scenario: `ISTHMUS_KEEP_CLUSTERS=1` leaves everything running, and the next run starts from it. */
const keep = process.env.ISTHMUS_KEEP_CLUSTERS === '1';
const onStage = openStage({ folder: 'whole-clusters', brokerPort: 7543, storage: true, keep });

// In this order: each scenario finds what the ones before it left. Clusters that were kept may have all of that already.
if (!keep) inOrder('file');
firstPeering(onStage);
oneProcess(onStage);
crossing(onStage);
remotePods(onStage);
refusals(onStage);
kubeletEndpoint(onStage);
credentials(onStage);
brokerDown(onStage);
unpeering(onStage);
volumes(onStage);
