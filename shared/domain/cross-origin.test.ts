import { expect, test } from 'vitest';
import { isOrigin } from './cross-origin.ts';

test.each([
  'https://portal.example.com',
  'https://portal.example.com:8443',
  'http://localhost:5173',
  'http://127.0.0.1:1',
])('%s is an origin that may be let in', (text) => expect(isOrigin(text)).toBe(true));

test.each([
  '*',
  'null',
  'portal.example.com',
  'https://portal.example.com/',
  'https://Portal.example.com',
  'https://portal.example.com:443',
  'https://*.example.com',
  'http://portal.example.com',
  'file:///tmp/page.html',
])('%s is none', (text) => expect(isOrigin(text)).toBe(false));
