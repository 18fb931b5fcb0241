/** What a person does in a browser at a provider that asks for a device code: plain requests, with cookies and the forms of the pages. */

export interface Person {
  /** Opens the page, logs in under this name and consents. Resolves with the text of the last page. */
  consent(page: string, login: string): Promise<string>;
  /** Opens the page and refuses. */
  refuse(page: string): Promise<string>;
}

interface Shown {
  readonly url: string;
  readonly html: string;
}

const maxSteps = 20;

export function personAtProvider(): Person {
  const cookies = new Map<string, string>();

  async function go(url: string, form?: Readonly<Record<string, string>>): Promise<Shown> {
    let at = url;
    let body = form;
    for (let step = 0; step < maxSteps; step++) {
      const response = await fetch(at, {
        redirect: 'manual',
        headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
        ...(body && { method: 'POST', body: new URLSearchParams(body) }),
      });
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        cookies.set(name, value);
      }
      const next = response.headers.get('location');
      if (next === null) return { url: at, html: await response.text() };
      at = new URL(next, at).href;
      body = undefined;
    }
    throw new Error(`${url} leads from page to page`);
  }

  /** Sends the form of a page, with what it holds already. */
  function submit({ url, html }: Shown, more: Readonly<Record<string, string>> = {}): Promise<Shown> {
    const action = /<form[^>]*\baction="([^"]*)"/.exec(html)?.[1];
    if (action === undefined) throw new Error(`no form at ${url}: ${html}`);
    const held = [...html.matchAll(/<input[^>]*>/g)].flatMap(([input]) => {
      const name = /\bname="([^"]*)"/.exec(input)?.[1];
      return name === undefined ? [] : [[name, /\bvalue="([^"]*)"/.exec(input)?.[1] ?? ''] as const];
    });
    return go(new URL(action, url).href, { ...Object.fromEntries(held), ...more });
  }

  /** The page that shows the code, after the one that sends itself. */
  const open = async (page: string): Promise<Shown> => submit(await go(page));

  return {
    async consent(page, login) {
      const loginPage = await submit(await open(page));
      const consentPage = await submit(loginPage, { login, password: 'any' });
      return (await submit(consentPage)).html;
    },
    async refuse(page) {
      return (await submit(await open(page), { abort: 'yes' })).html;
    },
  };
}
