/** The rules about ways in: how peers reach this cluster, and the API server its pods. Pure. */
import { isWithin, parseAddress } from '#shared/domain/cidr.ts';
import { type Rule, stopOf } from './facts.ts';

export const ranges: Rule = ({ ranges: found }) => {
  const check = 'ranges';
  if (found === undefined) return { check, outcome: 'ok', text: 'not needed without a network' };
  if ('refusal' in found) return stopOf(check, found.refusal);
  const guessed = found.notes.some((note) => note.includes('(a guess from '));
  return { check, outcome: guessed ? 'unknown' : 'ok', text: found.notes.join('; ') };
};

const privateRanges = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16'];
const isPrivate = (host: string): boolean => parseAddress(host) !== undefined && isWithin(`${host}/32`, privateRanges);

export const apiUrl: Rule = ({ apiUrl: found, cluster, found: { profile } }) => {
  const check = 'api-url';
  if ('refusal' in found) {
    const stop = stopOf(check, found.refusal);
    const [endpoint] = cluster.apiEndpoints;
    if (endpoint === undefined || found.refusal.detail.reason !== 'loopback') return stop;
    const why = profile.loopbackApi ? `; kubeconfigs of ${profile.title} name the machine that they are on` : '';
    return {
      ...stop,
      text: `${stop.text}${why}`,
      remedy: `add --api-server-url https://${endpoint}, which is where the cluster itself reaches it, or another https://HOST:PORT that peers reach`,
    };
  }
  const { hostname } = new URL(found.url);
  if (!isPrivate(hostname)) return { check, outcome: 'ok', text: `peers use ${found.url}` };
  return {
    check,
    outcome: 'adapted',
    text: `peers use ${found.url}, a private address: those in other networks reach it through the link, by \`isthmus peer --in-band\``,
  };
};

export const gateways: Rule = ({ cluster, ranges: wanted }) => {
  const check = 'gateways';
  if (wanted === undefined) return { check, outcome: 'ok', text: 'not needed without a network' };
  const works = cluster.balanced.find(({ address }) => address !== undefined);
  if (works !== undefined)
    return { check, outcome: 'ok', text: `Services of type LoadBalancer work: ${works.name} has ${works.address}` };
  const addresses = (type: string): string[] =>
    cluster.nodes.flatMap((node) => node.addresses.filter((one) => one.type === type).map(({ address }) => address));
  const [outside, inside] = [addresses('ExternalIP'), addresses('InternalIP')];
  const at = (outside.length > 0 ? outside : inside).slice(0, 3).join(', ');
  const waiting = cluster.balanced.map(({ name }) => name).slice(0, 3);
  const seen =
    waiting.length > 0
      ? `Services of type LoadBalancer wait for an address (${waiting.join(', ')})`
      : 'no Service of type LoadBalancer shows that those work';
  return {
    check,
    outcome: 'adapted',
    text: `${seen}: gateways that listen here get a NodePort${at === '' ? '' : `, at ${at}`}, unless \`isthmus peer --gateway-service-type LoadBalancer\` says otherwise${
      outside.length === 0 && inside.length > 0 && inside.every(isPrivate)
        ? '; these addresses are private, so peers in other networks have to be the ones that listen (--gateway-location)'
        : ''
    }`,
  };
};

const webhookPort = 9443;

export const webhooks: Rule = ({ cluster, found: { profile } }) => {
  const check = 'webhooks';
  const nodeAddresses = new Set(cluster.nodes.flatMap(({ addresses }) => addresses.map(({ address }) => address)));
  const hosts = cluster.apiEndpoints.map((endpoint) => endpoint.slice(0, endpoint.lastIndexOf(':')));
  const onNodes = hosts.filter((host) => nodeAddresses.has(host));
  if (hosts.length > 0 && onNodes.length === hosts.length)
    return {
      check,
      outcome: 'ok',
      text: `the API server runs on nodes (${onNodes.join(', ')}) and reaches pods as they do`,
    };
  if (profile.tunnelled) return { check, outcome: 'ok', text: `API servers of ${profile.title} have a way to pods` };
  return {
    check,
    outcome: 'unknown',
    text: `the API server${hosts.length > 0 ? ` at ${hosts.join(', ')}` : ''} is no node: it has to reach pods of this cluster at TCP ${webhookPort}, through every firewall between them`,
  };
};
