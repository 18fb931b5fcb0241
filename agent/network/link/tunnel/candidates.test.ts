import { describe, expect, test } from 'vitest';
import { candidateTexts, resolveCandidates } from './candidates.ts';

const gateway = (annotation?: string) => ({
  apiVersion: 'v1',
  kind: 'GatewayClient',
  metadata: {
    name: 'g',
    annotations: annotation === undefined ? {} : { 'networking.isthmus.dev/peer-candidates': annotation },
  },
});

describe('candidates', () => {
  test.each([
    {
      what: 'endpoint, then annotation',
      annotation: '["192.0.2.2:7","gw.example.com:8"]',
      addresses: ['192.0.2.1'],
      port: 5,
      gives: ['192.0.2.1:5', '192.0.2.2:7', 'gw.example.com:8'],
    },
    {
      what: 'each once',
      annotation: '["192.0.2.1:5"]',
      addresses: ['192.0.2.1', '192.0.2.1'],
      port: 5,
      gives: ['192.0.2.1:5'],
    },
    { what: 'no port, no endpoint', annotation: '["192.0.2.2:7"]', addresses: ['192.0.2.1'], gives: ['192.0.2.2:7'] },
    { what: 'only what is an endpoint', annotation: '["192.0.2.2","a b:1","x:0","x:70000",7,"ok:1"]', gives: ['ok:1'] },
    { what: 'nothing of an annotation that is no list', annotation: '{"a":1}', gives: [] },
    { what: 'nothing of an annotation that is no JSON', annotation: '192.0.2.2:7', gives: [] },
  ])('$what', ({ annotation, addresses, port, gives }) => {
    const endpoint = { ...(addresses === undefined ? {} : { addresses }), ...(port === undefined ? {} : { port }) };
    expect(candidateTexts(gateway(annotation), endpoint)).toEqual(gives);
  });

  test('names become all their addresses; one that fails does not hinder the others', async () => {
    const resolve = async (host: string) => {
      if (host === 'down') throw new Error('ENOTFOUND');
      return ['192.0.2.9', '192.0.2.10'];
    };
    expect(await resolveCandidates(['down:1', 'up:2', '192.0.2.1:3', '192.0.2.9:2'], resolve)).toEqual([
      '192.0.2.9:2',
      '192.0.2.10:2',
      '192.0.2.1:3',
    ]);
  });
});
