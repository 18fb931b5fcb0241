import { describe, expect, test } from 'vitest';
import { defaultPublicUrl, parseListenAddress, parsePublicUrl, servingNames } from './listen-address.ts';

describe('the listen address', () => {
  test.each([
    { text: '127.0.0.1:8443', host: '127.0.0.1', port: 8443 },
    { text: ':8443', host: '0.0.0.0', port: 8443 },
    { text: '8443', host: '0.0.0.0', port: 8443 },
    { text: '[::1]:0', host: '::1', port: 0 },
    { text: 'broker.local:443', host: 'broker.local', port: 443 },
  ])('$text is host $host and port $port', ({ text, host, port }) => {
    expect(parseListenAddress(text)).toEqual({ host, port });
  });

  test.each(['', 'host', 'host:', 'host:99999', '1:2:3', '[host]:1'])('%j is refused with what is accepted', (text) => {
    expect(() => parseListenAddress(text)).toThrow(/accepted are HOST:PORT/);
  });
});

describe('the public URL', () => {
  test('loses its trailing slash, because agents sign for it', () => {
    expect(parsePublicUrl('https://broker.example.com:8443/')).toBe('https://broker.example.com:8443');
  });

  test.each(['http://x', 'broker', 'https://x/?a=1'])('%j is refused', (text) => {
    expect(() => parsePublicUrl(text)).toThrow(/an https URL/);
  });

  test('defaults to the address listened on', () => {
    expect(defaultPublicUrl('192.0.2.1', 8443)).toBe('https://192.0.2.1:8443');
    expect(defaultPublicUrl('::1', 8443)).toBe('https://[::1]:8443');
  });

  test('is no wildcard when the broker listens everywhere', () => {
    expect(defaultPublicUrl('0.0.0.0', 8443)).not.toContain('0.0.0.0');
  });
});

test('the serving certificate names the public host, the listen host and this machine', () => {
  expect(servingNames('192.0.2.1', 'https://[2001:db8::1]:1')).toEqual(
    expect.arrayContaining(['2001:db8::1', '192.0.2.1', 'localhost', '127.0.0.1']),
  );
});
