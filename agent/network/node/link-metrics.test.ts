import { expect, test } from 'vitest';
import { Registry } from '#shared/metrics/registry.ts';
import { createLinkMetrics } from './link-metrics.ts';

const samples = (registry: Registry): string[] =>
  registry
    .text()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#') && !line.includes('_bucket'));

test('a link tells what its tunnel and its pings say, by the names of Liqo and ours', () => {
  const registry = new Registry();
  const link = createLinkMetrics(registry).link('milan', 'kernel');
  link.answered(12.5);
  link.report(
    { value: 'Connected', rttMs: 12.5, packetLoss: 3, handshakeAt: 1_700_000_000_000, mtu: 1340 },
    { receivedBytes: 100, sentBytes: 200 },
  );
  const peer = '{driver="wireguard",cluster_id="milan"}';
  expect(samples(registry)).toEqual([
    `liqo_peer_receive_bytes_total${peer} 100`,
    `liqo_peer_transmit_bytes_total${peer} 200`,
    `liqo_peer_latency_us${peer} 12500`,
    `liqo_peer_is_connected${peer} 1`,
    'liqo_wireguard_implementation{driver="wireguard",implementation="kernel"} 1',
    `isthmus_link_packet_loss_ratio{cluster_id="milan"} 0.03`,
    `isthmus_link_last_handshake_timestamp_seconds{cluster_id="milan"} 1700000000`,
    `isthmus_link_mtu_bytes{cluster_id="milan"} 1340`,
    `liqo_peer_latency_histogram_us_sum${peer} 12500`,
    `liqo_peer_latency_histogram_us_count${peer} 1`,
  ]);
});

test('while the peer is silent the link is not connected and has no latency; a gateway that stands by tells nothing', () => {
  const registry = new Registry();
  const link = createLinkMetrics(registry).link('milan', 'userspace');
  link.report({ value: 'Error' }, undefined);
  expect(samples(registry)).toEqual([
    'liqo_peer_is_connected{driver="wireguard",cluster_id="milan"} 0',
    'liqo_wireguard_implementation{driver="wireguard",implementation="userspace"} 1',
  ]);
  link.end();
  expect(samples(registry)).toEqual([]);
});
