/** charts/isthmus/dashboards and charts/isthmus/alerts.json: what `--metrics` installs, as files for a Grafana and a Prometheus of any kind. */
import { alertGroups } from '#shared/metrics/alerts.ts';
import { dashboards } from '#shared/metrics/dashboards.ts';
import { grafanaJson } from '#shared/metrics/panel.ts';

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** Rule files are YAML, which JSON is. */
const alertsPath = 'charts/isthmus/alerts.json';

export const monitoringFiles = (): [file: string, text: string][] => [
  ...dashboards.map((dashboard): [string, string] => [
    `charts/isthmus/dashboards/${dashboard.uid}.json`,
    json(grafanaJson(dashboard)),
  ]),
  [alertsPath, json({ groups: alertGroups })],
];
