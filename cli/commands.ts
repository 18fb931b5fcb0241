/** The commands of `isthmus`: what the program's help says of each, and where it is. Nothing of a command is loaded before it is asked for. */
import type { Command } from 'commander';
import type { CliIo } from './output/io.ts';

export interface Listed {
  /** What follows the name in the help; a test compares it with the command itself. */
  readonly usage?: string;
  readonly alias?: string;
  /** The description of the command, which takes it from here. */
  readonly summary: string;
  readonly load: () => Promise<(io: CliIo) => Command>;
}

/** By name, in the order of the help. */
export const commands: Readonly<Record<string, Listed>> = {
  broker: {
    summary: 'run a broker',
    load: async () => (await import('./commands/broker.ts')).brokerCommand,
  },
  login: {
    usage: '[options] <url>',
    summary: 'log in to a broker; `isthmus broker serve` prints the line to paste',
    load: async () => (await import('./commands/login.ts')).loginCommand,
  },
  join: {
    usage: '[options] <name>',
    summary: 'install or update the agent in a cluster and connect it to the broker',
    load: async () => (await import('./commands/join.ts')).joinCommand,
  },
  leave: {
    usage: '[options] <name>',
    summary: 'take a cluster out: forget it at the broker and remove its agent',
    load: async () => (await import('./commands/leave.ts')).leaveCommand,
  },
  label: {
    summary: 'label what you have, to find it in lists',
    load: async () => (await import('./commands/label.ts')).labelCommand,
  },
  'rotate-key': {
    usage: '[options]',
    summary: 'give a cluster a new key pair; peerings and pods go on',
    load: async () => (await import('./commands/rotate-key.ts')).rotateKeyCommand,
  },
  lock: {
    summary: 'say whose clusters a cluster trusts, without the word of the broker: show, sign, trust, distrust, rotate',
    load: async () => (await import('./commands/lock.ts')).lockCommand,
  },
  trust: {
    usage: '[options] <peer>',
    summary: 'agree inside a cluster to the key of a peer, to its account, to a peering with it',
    load: async () => (await import('./commands/trust.ts')).trustCommand,
  },
  check: {
    usage: '[options]',
    summary: 'say what installing the agent in a cluster would meet, and change nothing',
    load: async () => (await import('./commands/check.ts')).checkCommand,
  },
  install: {
    usage: '[options]',
    summary: 'install or update the agent in a cluster that peers without a broker',
    load: async () => (await import('./commands/install.ts')).installCommand,
  },
  uninstall: {
    usage: '[options]',
    summary: 'remove the agent from a cluster that peers without a broker',
    load: async () => (await import('./commands/uninstall.ts')).uninstallCommand,
  },
  peer: {
    usage: '[options] <consumer> <provider>',
    summary: 'let CONSUMER use capacity of PROVIDER as one more node',
    load: async () => (await import('./commands/peer.ts')).peerCommand,
  },
  unpeer: {
    usage: '[options] <consumer> <provider>',
    summary: 'end a peering and remove everything of it on both sides',
    load: async () => (await import('./commands/peer.ts')).unpeerCommand,
  },
  network: {
    summary: 'look at the network between two clusters',
    load: async () => (await import('./commands/network.ts')).networkCommand,
  },
  generate: {
    summary: 'write manifests and credentials for others to use',
    load: async () => (await import('./commands/generate.ts')).generateCommand,
  },
  delete: {
    summary: 'take back what was generated',
    load: async () => (await import('./commands/generate.ts')).deleteCommand,
  },
  offload: {
    summary: 'let pods run at providers',
    load: async () => (await import('./commands/offload.ts')).offloadCommand,
  },
  unoffload: {
    summary: 'end the offloading of pods',
    load: async () => (await import('./commands/offload.ts')).unoffloadCommand,
  },
  slice: {
    summary: 'capacity that this cluster asked others for, and that others have here',
    load: async () => (await import('./commands/slice.ts')).sliceCommand,
  },
  volume: {
    summary: 'data of consumers that this provider keeps after their claims ended',
    load: async () => (await import('./commands/volume.ts')).volumeCommand,
  },
  move: {
    summary: 'move what stands in one cluster to another',
    load: async () => (await import('./commands/move.ts')).moveCommand,
  },
  cordon: {
    summary: 'at a provider: take no new pods of a consumer; what runs stays',
    load: async () => (await import('./commands/cordon.ts')).cordonCommand,
  },
  uncordon: {
    summary: 'at a provider: end a cordon or a drain',
    load: async () => (await import('./commands/cordon.ts')).uncordonCommand,
  },
  drain: {
    summary: 'at a provider: take back what a consumer was granted, and wait until its pods are gone',
    load: async () => (await import('./commands/cordon.ts')).drainCommand,
  },
  status: {
    usage: '[options] [peer]',
    summary: 'how a cluster and its peerings are, with its kubeconfig alone; logged in, with both ends of each peering',
    load: async () => (await import('./commands/status.ts')).statusCommand,
  },
  doctor: {
    usage: '[options] [consumer] [provider]',
    summary: 'what is wrong with a cluster or a peering: one cause, what shows it, and what to do',
    load: async () => (await import('./commands/doctor.ts')).doctorCommand,
  },
  'support-bundle': {
    usage: '[options]',
    summary: 'write one redacted archive: objects of ours, events, logs, status, what doctor finds',
    load: async () => (await import('./commands/support-bundle.ts')).supportBundleCommand,
  },
  get: {
    summary: 'list clusters, peerings, events or audit records',
    load: async () => (await import('./commands/get.ts')).getCommand,
  },
  describe: {
    summary: 'show one object in full',
    load: async () => (await import('./commands/describe.ts')).describeCommand,
  },
  invite: {
    summary: 'let other tenants use a cluster of yours: make, list and revoke invitations',
    load: async () => (await import('./commands/invite.ts')).inviteCommand,
  },
  redeem: {
    usage: '[options] <code> <consumer>',
    summary: 'use an invitation of another tenant: its cluster becomes a node of yours',
    load: async () => (await import('./commands/redeem.ts')).redeemCommand,
  },
  requests: {
    alias: 'request',
    summary: 'ask other tenants for published clusters, and answer requests for yours',
    load: async () => (await import('./commands/requests.ts')).requestsCommand,
  },
  directory: {
    summary: 'see what clusters other tenants offer, and offer yours',
    load: async () => (await import('./commands/directory.ts')).directoryCommand,
  },
  key: {
    summary: 'make, list, rotate and revoke API keys',
    load: async () => (await import('./commands/key.ts')).keyCommand,
  },
  webhook: {
    summary: 'have events posted to a URL, signed; see docs/events.md',
    load: async () => (await import('./commands/webhook.ts')).webhookCommand,
  },
  'event-target': {
    summary: 'have events put into your own EventBridge bus or SQS queue; see docs/events.md',
    load: async () => (await import('./commands/event-target.ts')).eventTargetCommand,
  },
  member: {
    summary: 'add, list, change and remove members of the tenant',
    load: async () => (await import('./commands/member.ts')).memberCommand,
  },
  tenant: {
    summary: 'show, rename, export and delete the tenant, and its identity providers',
    load: async () => (await import('./commands/tenant.ts')).tenantCommand,
  },
  version: {
    usage: '[options]',
    summary: 'print the versions of this program and of the broker it is logged in to',
    load: async () => (await import('./commands/version.ts')).versionCommand,
  },
  completion: {
    usage: '<shell>',
    summary: 'print a completion script for bash, zsh, fish or PowerShell',
    load: async () => (await import('./commands/completion.ts')).completionCommand,
  },
};
