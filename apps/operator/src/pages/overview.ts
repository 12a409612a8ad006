import type { FastifyInstance } from 'fastify';
import { chart } from '../html/chart';
import { bytes, number, percent, perSecond, seconds } from '../html/format';
import { html, type Html } from '../html/html';
import { layout, live } from '../html/layout';
import type { WatchedProcess } from '../watch/process';
import type { Watch } from '../watch/watch';

export function overviewPage(app: FastifyInstance, watch: Watch): void {
  app.get('/', (request, reply) => {
    const body = [live('problems', problems(watch)), live('charts', charts(watch)), live('processes', processes(watch))];
    const { operator } = request.session;
    return reply
      .type('text/html')
      .send(layout({ title: 'Overview', path: '/', operator, form: request.form(), isLive: true, body }));
  });
}

function problems({ problems: found, history, processes }: Watch): Html {
  const all = [...found, ...(history.refused > 0 ? [`${history.refused} series have no room and are not shown`] : [])];
  const bad = processes.filter(({ state }) => state !== 'ready').length;
  return html`<p class="${bad > 0 ? 'problem' : 'fine'}">
      ${processes.length - bad} of ${processes.length} processes are ready with all that they depend on.
    </p>
    ${all.map((one) => html`<p class="problem">${one}.</p>`)}`;
}

const WORK: Record<string, string> = { gateway: 'Calls' };

function charts({ history, processes }: Watch): Html[] {
  const services = [...new Set(processes.map(({ service }) => service))].filter((service) => service !== 'unknown');
  return services.map((service) => {
    const work = WORK[service] ?? 'Deliveries';
    const points = (what: string) => history.points(`${service} ${what}`);
    return html`<section aria-labelledby="of-${service}">
      <h2 id="of-${service}">${service}</h2>
      <div class="charts">
        ${[
          chart({ title: work, points: points('rate'), format: perSecond }),
          chart({ title: 'Failed', points: points('failed'), format: perSecond }),
          chart({ title: 'Refused', points: points('refused'), format: perSecond }),
          chart({ title: 'Latency, 50 % / 99 %', points: points('p50'), above: points('p99'), format: seconds }),
        ]}
      </div>
    </section>`;
  });
}

function processes({ processes: all, history }: Watch): Html {
  return html`<section aria-labelledby="processes-title">
    <h2 id="processes-title">Processes</h2>
    <div class="table" role="region" aria-labelledby="processes-title" tabindex="0">
      <table>
        <thead>
          <tr>
            <th scope="col">Process</th>
            <th scope="col">State</th>
            <th scope="col">Depends on</th>
            <th scope="col" class="number">Work</th>
            <th scope="col" class="number">Processor</th>
            <th scope="col" class="number">Memory</th>
            <th scope="col" class="number">Database</th>
            <th scope="col" class="number">Runs for</th>
            <th scope="col">Version</th>
          </tr>
        </thead>
        <tbody>
          ${all.map((one) => row(one, history.last(`process ${one.address} rate`), history.last(`process ${one.address} cpu`)))}
        </tbody>
      </table>
    </div>
  </section>`;
}

const SIGNS = { ready: 'good', impaired: 'warning', 'not ready': 'bad', 'does not answer': 'bad' };

function row({ address, service, state, reason, dependencies, now }: WatchedProcess, rate: number, cpu: number): Html {
  const pool = now?.pool && `${number(now.pool.busy)} of ${number(now.pool.limit)}`;
  return html`<tr>
    <th scope="row">${service} <span class="quiet">${address}</span></th>
    <td><span class="state ${SIGNS[state]}">${state}</span></td>
    <td>
      ${
        state === 'does not answer'
          ? reason
          : html`<ul class="plain">
              ${dependencies.map((one) => html`<li class="${one.reason !== undefined && 'bad'}">${one.name}: ${one.reason ?? 'up'}</li>`)}
            </ul>`
      }
    </td>
    <td class="number">${perSecond(rate)}</td>
    <td class="number">${percent(cpu)}</td>
    <td class="number">${bytes(now?.memoryBytes ?? NaN)}</td>
    <td class="number">${pool ?? '–'}</td>
    <td class="number">${now ? seconds(Date.now() / 1000 - now.startedAt) : '–'}</td>
    <td>${now?.version ?? '–'}</td>
  </tr>`;
}
