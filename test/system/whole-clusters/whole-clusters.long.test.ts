/**
 * What `npm test` leaves out of the whole product on two real clusters, because it waits for minutes: updates that are taken back, a cut of 30 s, a provider that is dead when its
 * peering ends, and agents that are killed, in as many lives as `ISTHMUS_ROUNDS` says. `ISTHMUS_SEED` draws the same moments again.
 */
import { inOrder } from '#test/harness/in-order.ts';
import { openStage } from './open-stage.ts';
import { cutOffProvider } from './scenarios/cut-off.ts';
import { deadProvider } from './scenarios/dead-provider.ts';
import { killedAgents } from './scenarios/killed-agents.ts';
import { takenBackUpdates } from './scenarios/taken-back.ts';

const lives = Number(process.env.ISTHMUS_ROUNDS ?? 5);
const onStage = openStage({ folder: 'whole-clusters-long', brokerPort: 7687, prepare: (stage) => stage.mustPeer() });

// In this order: each scenario finds what the ones before it left.
inOrder('file');
takenBackUpdates(onStage);
cutOffProvider(onStage);
deadProvider(onStage);
killedAgents(onStage, lives);
