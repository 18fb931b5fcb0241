/** The console: finds the session, then shows the page that the address names. */
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { holder, messageOf, resume } from './data/api.ts';
import { watch } from './data/live.ts';
import { goOnWithLogin } from './data/oidc.ts';
import { route } from './data/route.ts';
import { AccessPage } from './pages/access.tsx';
import { AuditPage } from './pages/audit.tsx';
import { ClusterPage } from './pages/cluster.tsx';
import { ClustersPage } from './pages/clusters.tsx';
import { DeliveriesPage } from './pages/deliveries.tsx';
import { DirectoryPage } from './pages/directory.tsx';
import { EventsPage } from './pages/events.tsx';
import { JoinPage } from './pages/join.tsx';
import { LoginPage } from './pages/login.tsx';
import { MapPage } from './pages/map.tsx';
import { PeerPage } from './pages/peer.tsx';
import { PeeringPage } from './pages/peering.tsx';
import { PeeringsPage } from './pages/peerings.tsx';
import { EventTargetPage, WebhookPage } from './pages/receiver.tsx';
import { SharingPage } from './pages/sharing.tsx';
import { TenantsPage } from './pages/tenants.tsx';
import { Failure } from './parts/bits.tsx';
import { restoreTheme, Shell } from './parts/shell.tsx';

function Page() {
  const { page, args } = route.value;
  const [first = ''] = args;
  switch (page) {
    case 'clusters':
      return <ClustersPage />;
    case 'cluster':
      return <ClusterPage key={first} name={first} />;
    case 'peerings':
      return <PeeringsPage />;
    case 'peering':
      return <PeeringPage key={first} id={first} />;
    case 'join':
      return <JoinPage />;
    case 'peer':
      return <PeerPage />;
    case 'events':
      return <EventsPage />;
    case 'sharing':
      return <SharingPage />;
    case 'directory':
      return <DirectoryPage />;
    case 'access':
      return <AccessPage />;
    case 'deliveries':
      return <DeliveriesPage />;
    case 'webhook':
      return <WebhookPage key={first} id={first} />;
    case 'event-target':
      return <EventTargetPage key={first} id={first} />;
    case 'audit':
      return <AuditPage />;
    default:
      return <MapPage />;
  }
}

/** Moves the reader to the beginning of the new page, as loading one would. */
function useNewPage(): void {
  const { page, args } = route.value;
  const at = [page, ...args].join('/');
  useEffect(() => {
    document.title = `${[page, ...args].join(' ')} - Isthmus`;
    scrollTo(0, 0);
  }, [at]);
}

function Console() {
  const who = holder.value;
  const [failure, setFailure] = useState<string>();
  const [loginFailure, setLoginFailure] = useState<string>();
  useNewPage();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const find = (): void => {
      begun
        .then((failed) => {
          setLoginFailure(failed);
          return resume();
        })
        .then(
          () => setFailure(undefined),
          (error: unknown) => {
            setFailure(`${messageOf(error)}; the page asks again by itself.`);
            timer = setTimeout(find, 2_000);
          },
        );
    };
    find();
    return () => clearTimeout(timer);
  }, []);
  if (who === undefined)
    return <main>{failure === undefined ? <p>Asking the broker…</p> : <Failure message={failure} />}</main>;
  if (who.kind === 'none') return <LoginPage failure={loginFailure} />;
  return <Shell>{who.kind === 'operator' ? <TenantsPage /> : <Page />}</Shell>;
}

restoreTheme();
/** Of a login by an identity provider: the way back from it ends here. */
const begun = goOnWithLogin();
holder.subscribe(watch);
const element = document.getElementById('console');
if (element) render(<Console />, element);
