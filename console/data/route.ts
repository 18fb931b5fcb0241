/** Which page is shown: the part of the address behind `#`, so that any server of files can serve the console. */
import { signal } from '@preact/signals';

export interface Route {
  readonly page: string;
  /** What follows it, decoded. */
  readonly args: readonly string[];
  readonly query: URLSearchParams;
}

function read(): Route {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const [page = '', ...args] = path.split('/').map(decoded);
  return { page: page === '' ? 'map' : page, args, query: new URLSearchParams(query) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = signal<Route>(read());
addEventListener('hashchange', () => {
  route.value = read();
});

export const hrefOf = (page: string, ...args: readonly string[]): string =>
  `#/${[page, ...args.map(encodeURIComponent)].join('/')}`;

export const goTo = (page: string, ...args: readonly string[]): void => {
  location.hash = hrefOf(page, ...args);
};
