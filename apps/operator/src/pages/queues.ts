import type { FastifyInstance } from 'fastify';
import { QUEUES, SERVICES } from '@app/rabbitmq/topology/topology';
import { chart } from '../html/chart';
import { number, perSecond, seconds } from '../html/format';
import { html, type Html } from '../html/html';
import { live, liveStatus } from '../html/layout';
import { ofFigures, tableOf } from '../html/table';
import { sendPage } from './send-page';
import type { BrokerQueues } from '../watch/broker-queues';
import { TICK_MS } from '../watch/history';
import { lengthOf, queuesOf } from '../watch/measures';
import type { Watch } from '../watch/watch';

/** Longest queues with a chart. */
const DRAWN = 8;
/** Queues whose lengths the processes tell. */
export const OWN = QUEUES.filter(({ name }) => SERVICES.some((service) => name.startsWith(`${service}.`)));

interface Row {
  name: string;
  messages: number;
  unacknowledged: number;
  consumers: number;
  limit: number;
  in: number;
  out: number;
  age: number;
}

export function queuesPage(
  app: FastifyInstance,
  watch: Pick<Watch, 'history' | 'processes'>,
  broker: Pick<BrokerQueues, 'queues' | 'ofConnections' | 'problem'>,
): void {
  app.get('/queues', (request, reply) => {
    const rows = rowsOf(watch, broker);
    const body = [
      liveStatus('problems', problems(watch, broker)),
      live('charts', charts(watch)),
      table(rows),
      live(
        'connections',
        html`<p>Queues that the broker has named, for replies and for events of a process: ${number(broker.ofConnections)}.</p>`,
      ),
      html`<p class="quiet">
        The age is the time from the publication of a command to its turn, which 99 % of those of the last 10 s did not exceed.
        Nobody can see the age of a message that still waits in a quorum queue: while nothing is consumed, the age is not known.
      </p>`,
    ];
    return sendPage(request, reply, 'Queues', body, { isLive: true });
  });
}

/** By the processes, which is newer, and by the broker, which knows more. */
function rowsOf({ processes }: Pick<Watch, 'processes'>, { queues }: Pick<BrokerQueues, 'queues'>): Row[] {
  const rows = new Map<string, Row>();
  for (const { ready: messages, ...queue } of queues) rows.set(queue.name, { ...queue, messages, age: NaN });
  for (const queue of queuesOf(processes)) {
    const { unacknowledged, in: arriving, out } = rows.get(queue.name) ?? { unacknowledged: NaN, in: NaN, out: NaN };
    rows.set(queue.name, { ...queue, unacknowledged, in: arriving, out });
  }
  return [...rows.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

const unknownOf = ({ history }: Pick<Watch, 'history'>): number =>
  OWN.filter(({ name }) => !Number.isFinite(history.last(lengthOf(name)))).length;

function problems(watch: Pick<Watch, 'history'>, { problem }: Pick<BrokerQueues, 'problem'>): Html {
  const unknown = unknownOf(watch);
  return html`${problem !== undefined && html`<p class="problem">${problem}.</p>`}
  ${unknown > 0 && html`<p class="problem">The length of ${unknown} of ${OWN.length} queues is not known now.</p>`}`;
}

function charts({ history }: Pick<Watch, 'history'>): Html {
  const lengths = history.names.flatMap((series) => /^queue (.+) messages$/.exec(series)?.[1] ?? []);
  const points = (name: string) => history.points(lengthOf(name));
  const longest = lengths
    .map((name) => ({ name, most: Math.max(0, ...points(name).filter(Number.isFinite)) }))
    .filter(({ most }) => most > 0)
    .sort((a, b) => b.most - a.most)
    .slice(0, DRAWN);
  const looks = Math.max(0, ...lengths.map((name) => points(name).filter(Number.isFinite).length));
  return html`${
    longest.length > 0
      ? html`<h2>Longest queues of ten minutes</h2>
          <div class="charts">${longest.map(({ name }) => chart({ title: name, points: points(name), format: number }))}</div>`
      : unknownOf({ history }) === 0 &&
        html`<p class="fine">In the last ${seconds((looks * TICK_MS) / 1000)} no message was seen waiting in any queue.</p>`
  }`;
}

function table(rows: readonly Row[]): Html {
  return html`<h2 id="queues-title">All queues</h2>
    <div class="table" role="region" aria-labelledby="queues-title" tabindex="0">
      ${live(
        'queues',
        tableOf(
          ['Queue', ...['Waiting', 'Limit', 'Not acknowledged', 'Consumers', 'In', 'Out', 'Age, p99'].map(ofFigures)],
          rows.map(
            (row) =>
              html`<tr>
                <th scope="row">${row.name}</th>
                <td class="number ${row.messages > row.limit / 2 && 'bad'}">${number(row.messages)}</td>
                <td class="number">${number(row.limit)}</td>
                <td class="number">${number(row.unacknowledged)}</td>
                <td class="number">${number(row.consumers)}</td>
                <td class="number">${perSecond(row.in)}</td>
                <td class="number">${perSecond(row.out)}</td>
                <td class="number">${seconds(row.age)}</td>
              </tr>`,
          ),
        ),
      )}
    </div>`;
}
