import type { FastifyInstance } from 'fastify';
import { counted } from '@app/runtime/counted';
import { chart } from '../html/chart';
import { bytes, number, percent, perSecond, seconds } from '../html/format';
import { html, type Html } from '../html/html';
import { live, liveStatus } from '../html/layout';
import { ofFigures, tableOf } from '../html/table';
import { sendPage } from './send-page';
import { operationsOf, type OperationState } from '../watch/measures';
import type { WatchedProcess } from '../watch/process';
import type { Watch } from '../watch/watch';

export function overviewPage(app: FastifyInstance, watch: Watch): void {
  app.get('/', (request, reply) => {
    const body = [liveStatus('problems', problems(watch)), processes(watch), live('services', services(watch))];
    return sendPage(request, reply, 'Overview', body, { isLive: true });
  });
}

function problems({ problems: found, history, processes }: Watch): Html {
  const all = [...found, ...(history.refused > 0 ? [`series that have no room and are not shown: ${history.refused}`] : [])];
  const bad = processes.filter(({ state }) => state !== 'ready').length;
  const isWhole = bad === 0 && found.length === 0 && processes.length > 0;
  return html`<p class="${isWhole ? 'fine' : 'problem'}">
      ${processes.length - bad} of ${counted(processes.length, 'process is', 'processes are')} ready with all that they depend on.
    </p>
    ${all.map((one) => html`<p class="problem">${one}.</p>`)}`;
}

const WORK: Record<string, string> = { gateway: 'Calls' };

function services({ history, processes }: Watch): Html[] {
  const names = [...new Set(processes.map(({ service }) => service))].filter((service) => service !== 'unknown');
  return names.map((service) => {
    const work = WORK[service] ?? 'Deliveries';
    const points = (what: string) => history.points(`${service} ${what}`);
    return html`<section aria-labelledby="of-${service}">
      <h2 id="of-${service}">${service}</h2>
      ${live(
        `charts-${service}`,
        html`<div class="charts">
          ${[
            chart({ title: work, points: points('rate'), format: perSecond }),
            chart({ title: 'Failed', points: points('failed'), format: perSecond }),
            chart({ title: 'Refused', points: points('refused'), format: perSecond }),
            chart({ title: 'Latency, p50 / p99', points: points('p50'), above: points('p99'), format: seconds }),
          ]}
        </div>`,
      )}
      <details>
        <summary>Operations of the last 10 s</summary>
        <div class="table" role="region" aria-label="Operations of ${service}" tabindex="0">
          ${live(`operations-${service}`, operations(operationsOf(processes, service)))}
        </div>
      </details>
    </section>`;
  });
}

const operations = (states: readonly OperationState[]): Html =>
  tableOf(
    ['Operation', ...['Rate', 'Failed', 'p50', 'p99'].map(ofFigures)],
    states.map(
      ({ name, rate, failed, p50, p99 }) =>
        html`<tr>
          <th scope="row">${name}</th>
          <td class="number">${perSecond(rate)}</td>
          <td class="number">${perSecond(failed)}</td>
          <td class="number">${seconds(p50)}</td>
          <td class="number">${seconds(p99)}</td>
        </tr>`,
    ),
  );

function processes({ processes: all, history }: Watch): Html {
  return html`<section>
    <h2 id="processes-title">Processes</h2>
    <div class="table" role="region" aria-labelledby="processes-title" tabindex="0">
      ${live(
        'processes',
        tableOf(
          [
            'Process',
            'State',
            'Depends on',
            ...['Work', 'Processor', 'Memory', 'Database', 'Runs for'].map(ofFigures),
            'Version',
          ],
          all.map((one) => row(one, history.last(`process ${one.address} rate`), history.last(`process ${one.address} cpu`))),
        ),
      )}
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
