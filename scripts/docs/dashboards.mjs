import { DASHBOARDS } from './dashboard-panels.mjs';

const COLUMNS = 3;
const [WIDTH, HEIGHT] = [8, 7];

/** The JSON that Grafana imports. @param {string} name */
export function dashboardJson(name) {
  const { title, panels } = DASHBOARDS[name];
  const datasource = { type: 'prometheus', uid: '${datasource}' };
  const dashboard = {
    uid: `collaboration-${name}`,
    title,
    tags: ['collaboration-backend'],
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    schemaVersion: 38,
    time: { from: 'now-1h', to: 'now' },
    timezone: '',
    links: [
      {
        type: 'dashboards',
        tags: ['collaboration-backend'],
        title: 'Other dashboards',
        tooltip: '',
        icon: 'external link',
        asDropdown: true,
        targetBlank: false,
        // The other one shows the same time from the same data source.
        keepTime: true,
        includeVars: true,
      },
    ],
    templating: { list: [{ name: 'datasource', type: 'datasource', query: 'prometheus' }] },
    panels: panels.map(({ title, unit = 'short', queries, about }, index) => ({
      id: index + 1,
      type: 'timeseries',
      title,
      ...(about && { description: about }),
      datasource,
      gridPos: { x: (index % COLUMNS) * WIDTH, y: Math.floor(index / COLUMNS) * HEIGHT, w: WIDTH, h: HEIGHT },
      fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 10, showPoints: 'never' } }, overrides: [] },
      options: {
        legend: { showLegend: true, displayMode: 'list', placement: 'bottom', calcs: [] },
        tooltip: { mode: 'multi', sort: 'desc' },
      },
      targets: queries.map(([expr, legendFormat], query) => ({
        refId: String.fromCharCode(65 + query),
        datasource,
        expr,
        legendFormat,
      })),
    })),
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}
