/** Around every page: navigation, whose page it is, whether what it shows is current. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { holder, logOut, messageOf } from '../data/api.ts';
import { connection, now } from '../data/live.ts';
import { hrefOf, route } from '../data/route.ts';
import type { Right } from '../model/rights.ts';
import { Failure } from './bits.tsx';
import { can } from './load.ts';

const entries: readonly (readonly [page: string, title: string, right?: Right])[] = [
  ['map', 'Map'],
  ['clusters', 'Clusters'],
  ['peerings', 'Peerings'],
  ['sharing', 'Sharing'],
  ['directory', 'Directory'],
  ['events', 'Events'],
  ['access', 'Access', 'members:read'],
  ['deliveries', 'Webhooks', 'webhooks:read'],
  ['audit', 'Audit', 'audit:read'],
];

type Theme = 'auto' | 'light' | 'dark';
const themeKey = 'isthmus-theme';

function applyTheme(theme: Theme): void {
  localStorage.setItem(themeKey, theme);
  document.documentElement.dataset.theme = theme;
}

export const restoreTheme = (): void => applyTheme((localStorage.getItem(themeKey) as Theme | null) ?? 'auto');

function ThemeChoice() {
  const [theme, setTheme] = useState<Theme>((localStorage.getItem(themeKey) as Theme | null) ?? 'auto');
  return (
    <label class="theme">
      <span class="hidden">Colours</span>
      <select
        value={theme}
        onChange={(event) => {
          const chosen = event.currentTarget.value as Theme;
          setTheme(chosen);
          applyTheme(chosen);
        }}
      >
        <option value="auto">As the system</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

function Connection() {
  const state = connection.value;
  if (state === 'live') return null;
  if (state === 'loading') {
    return (
      <p class="banner" role="status">
        Reading clusters and peerings…
      </p>
    );
  }
  const seconds = Math.max(0, Math.round((now.value - state.lostAt) / 1_000));
  return (
    <p class="banner warn" role="status">
      The broker has not answered for {seconds} s; what is shown may be old. The page goes on asking by itself. Running
      peerings do not need the broker.
    </p>
  );
}

const current = (page: string): boolean => {
  const shown = route.value.page;
  return shown === page || (shown === 'cluster' && page === 'clusters') || (shown === 'peering' && page === 'peerings');
};

export function Shell({ children }: { children: ComponentChildren }) {
  const who = holder.value;
  const links =
    who?.kind === 'operator'
      ? ([['tenants', 'Tenants']] as const)
      : entries.filter(([, , right]) => right === undefined || can(right));
  const [leaving, setLeaving] = useState(false);
  const [stillHere, setStillHere] = useState<string>();
  const leave = async (): Promise<void> => {
    setLeaving(true);
    setStillHere(undefined);
    try {
      await logOut();
    } catch (error) {
      setStillHere(`You are still logged in, this browser holds the session: ${messageOf(error)}. Log out again.`);
    } finally {
      setLeaving(false);
    }
  };
  const skip = (): void => document.getElementById('content')?.focus();
  return (
    <>
      <button type="button" class="skip" onClick={skip}>
        To the content
      </button>
      <header class="top">
        <a class="brand" href={hrefOf(who?.kind === 'operator' ? 'tenants' : 'map')}>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <path d="M9 16h14" />
            <circle cx="9" cy="16" r="5" />
            <circle cx="23" cy="16" r="5" class="other" />
          </svg>
          Isthmus
        </a>
        <nav aria-label="Pages">
          <ul>
            {links.map(([page, title]) => (
              <li key={page}>
                <a href={hrefOf(page)} {...(current(page) && { 'aria-current': 'page' as const })}>
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="who">
          {who?.kind === 'member' && (
            <span>
              {who.tenant} <span class="quiet">({who.role})</span>
            </span>
          )}
          {who?.kind === 'operator' && <span>operator of the broker</span>}
          <ThemeChoice />
          <button type="button" class="small" disabled={leaving} onClick={() => void leave()}>
            Log out
          </button>
        </div>
      </header>
      <Failure message={stillHere} />
      {who?.kind === 'member' && <Connection />}
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <footer class="quiet">
        Times in {Intl.DateTimeFormat().resolvedOptions().timeZone}; point at one to read it in full.
      </footer>
    </>
  );
}
