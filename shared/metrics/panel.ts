/** Pieces of Grafana dashboards: what a panel needs so that it can be read, laid out in rows. */

interface Query {
  readonly expr: string;
  readonly legend: string;
}

interface Panel {
  readonly title: string;
  /** One sentence. */
  readonly description: string;
  /** As Grafana calls it. */
  readonly unit:
    | 's'
    | 'µs'
    | 'bytes'
    | 'Bps'
    | 'percentunit'
    | 'short'
    | 'ops'
    | 'reqps'
    | 'dateTimeFromNow'
    | 'bool_on_off';
  readonly type: 'timeseries' | 'stat' | 'table' | 'heatmap';
  readonly queries: readonly Query[];
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly panels: readonly Panel[];
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const datasource = { type: 'prometheus', uid: '${datasource}' } as const;
const perRow = 2;
const size = { w: 24 / perRow, h: 8 } as const;

/** What Grafana imports. */
export const grafanaJson = ({ uid, title, description, panels }: Dashboard): Record<string, unknown> => ({
  uid,
  title,
  description,
  tags: ['isthmus'],
  schemaVersion: 39,
  editable: true,
  refresh: '30s',
  time: { from: 'now-1h', to: 'now' },
  templating: {
    list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {} }],
  },
  panels: panels.map((panel, at) => ({
    id: at + 1,
    type: panel.type,
    title: panel.title,
    description: panel.description,
    datasource,
    gridPos: { ...size, x: (at % perRow) * size.w, y: Math.floor(at / perRow) * size.h },
    fieldConfig: { defaults: { unit: panel.unit }, overrides: [] },
    targets: panel.queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      expr,
      legendFormat: legend,
      ...(panel.type === 'table' && { instant: true, format: 'table' }),
    })),
  })),
});
