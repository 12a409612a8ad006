import type { FastifyInstance } from 'fastify';
import { counted } from '@app/runtime/counted';
import { chart } from '../html/chart';
import { number, perSecond, seconds } from '../html/format';
import { html, type Html } from '../html/html';
import { live } from '../html/layout';
import { sendPage } from './send-page';
import { tenantsOf } from '../watch/measures';
import type { Watch } from '../watch/watch';

export function workPage(app: FastifyInstance, watch: Watch): void {
  app.get('/work', (request, reply) => {
    const body = [live('writers', writers(watch)), live('outboxes', outboxes(watch)), live('tenants', tenants(watch))];
    return sendPage(request, reply, 'Work', body, { isLive: true });
  });
}

function writers({ history, processes }: Watch): Html {
  const points = (what: string) => history.points(`writer ${what}`);
  const count = processes.filter(({ now }) => now?.writer).length;
  return html`<h2>Writers of notifications</h2>
    <p>${counted(count, 'process writes', 'processes write')} notifications.</p>
    <div class="charts">
      ${[
        chart({ title: 'Notifications stored', points: points('notifications'), format: perSecond }),
        chart({ title: 'Notifications in a batch', points: points('size'), format: number }),
        chart({ title: 'Time of a batch, p50 / p99', points: points('p50'), above: points('p99'), format: seconds }),
        chart({ title: 'Waiting for a batch', points: points('waiting'), format: number }),
      ]}
    </div>`;
}

function outboxes({ history, processes }: Watch): Html[] {
  const services = [...new Set(processes.filter(({ now }) => now?.outbox).map(({ service }) => service))];
  return services.map((service) => {
    const points = (what: string) => history.points(`outbox ${service} ${what}`);
    return html`<h2>Outbox of ${service}</h2>
      <div class="charts">
        ${[
          chart({ title: 'Events that wait', points: points('events'), format: number }),
          chart({ title: 'Age of the oldest', points: points('oldest'), format: seconds }),
          chart({ title: 'Published', points: points('published'), format: perSecond }),
        ]}
      </div>`;
  });
}

function tenants({ processes, tenants: history }: Watch): Html {
  const rates = tenantsOf(processes);
  return html`<h2>Busiest API keys</h2>
    <p class="quiet">
      Calls over HTTP of the last 10 s, in all gateways. Commands of other services over the broker are not among them.
    </p>
    ${rates.length === 0 && html`<p>No API key calls.</p>`}
    <div class="charts">${rates.map(([key]) => chart({ title: key, points: history.points(key), format: perSecond }))}</div>`;
}
