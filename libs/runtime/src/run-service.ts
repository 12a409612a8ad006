import { leaveSignalsToOthers } from './stop-while-starting';
import { startTracing } from '@app/tracing/start-tracing';
import type { TracingConfig } from '@app/tracing/tracing-config';
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { collectDefaultMetrics } from 'prom-client';
import { SHUTDOWN_LIMIT_MS } from './settings/common-settings';
import { warningsOf } from './settings/misspelt-variables';
import { ConfigError } from './settings/settings';
import type { LogLevel } from './settings/log-levels';
import { createLogger, exitAfterLogging, NestLogger } from './logger';
import { describeProcess, ownVersion } from './metrics';
import { startOperationsServer } from './operations-server';
import { Readiness } from './readiness';

/** Settings of every process. */
export interface ServiceConfig extends TracingConfig {
  logLevel: LogLevel;
  healthPort: number;
  healthHost: string;
  shutdownDelayMs: number;
}

type ConfigClass<C> = new () => C;

export interface ServiceContext {
  logger: NestLogger;
  readiness: Readiness;
  /** Documents of the operations port, beside health and metrics: each by its path, written as JSON. */
  reports: Map<string, () => unknown>;
  /** Aborted on the first signal: then a start that waits for a dependency must end. */
  stopping: AbortSignal;
}

/**
 * Runs a service from the first log line to the exit code. Exit code 0 after SIGTERM or SIGINT and a clean drain; 1 when the configuration is
 * wrong, the start failed, the drain took over 20 s, or an error was not caught. Earlier signals end it at once: stop-while-starting.ts.
 *
 * Order of the drain: not ready, wait for load balancers to notice, close the app (which finishes running work), exit.
 *
 * @param start starts the app and returns its close()
 */
export async function runService<C extends ServiceConfig>(
  name: string,
  Config: ConfigClass<C>,
  start: (config: C, context: ServiceContext) => Promise<() => Promise<void>>,
): Promise<void> {
  // Packages load without a turn of the event loop. A signal that came meanwhile ends the process in this turn.
  await immediate();
  const config = configOrExit(Config);
  const pino = createLogger(name, config.logLevel);
  const logger = new NestLogger(pino);
  // Libraries log through Nest's Logger before the app exists.
  Logger.overrideLogger(logger);
  const readiness = new Readiness();
  const reports = new Map<string, () => unknown>();
  const stopping = new AbortController();
  const exit = (code: number) => exitAfterLogging(pino, code);

  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error) => {
      pino.fatal({ err: error as Error, event }, 'an uncaught error: stopping');
      exit(1);
    });
  }

  for (const problem of warningsOf(config)) pino.warn({ problem }, 'a variable may be misspelt');

  // The default of 10 ms uses more CPU time of an idle process than everything else. The lag percentiles include this interval.
  collectDefaultMetrics({ eventLoopMonitoringPrecision: 50 });
  describeProcess(name, readiness);
  const sendLastSpans = await startTracing({ name, version: ownVersion() }, config);
  let starting: Promise<() => Promise<void>> = Promise.resolve(async () => undefined);

  const stop = async (signal: string): Promise<void> => {
    if (stopping.signal.aborted) return;
    stopping.abort();
    readiness.draining = true;
    pino.info({ signal }, 'draining');
    setTimeout(() => {
      pino.error(`the drain took longer than ${SHUTDOWN_LIMIT_MS} ms`);
      exit(1);
    }, config.shutdownDelayMs + SHUTDOWN_LIMIT_MS).unref();
    await sleep(config.shutdownDelayMs);
    try {
      // A running start notices the signal. Then its resources are closed as usual.
      const close = await starting;
      await close();
      await sendLastSpans();
      pino.info('stopped');
      exit(0);
    } catch (err) {
      pino.error({ err }, 'the drain failed');
      exit(1);
    }
  };
  process.on('SIGTERM', (signal) => void stop(signal));
  process.on('SIGINT', (signal) => void stop(signal));
  leaveSignalsToOthers();

  try {
    // Listen before anything is connected, so that probes see a waiting process and not a missing one.
    const operations = await startOperationsServer(readiness, config, reports);
    pino.info({ healthPort: operations.port }, 'starting');
    starting = start(config, { logger, readiness, reports, stopping: stopping.signal });
    await starting;
    if (!stopping.signal.aborted) pino.info({ healthPort: operations.port }, 'started');
  } catch (err) {
    if (stopping.signal.aborted) return;
    const { code, address, port } = err as NodeJS.ErrnoException & { address?: string; port?: number };
    if (code === 'EADDRINUSE')
      pino.fatal(
        { address, port },
        'the start failed: this port is taken; PORT, OPERATOR_PORT or HEALTH_PORT chooses another one',
      );
    else pino.fatal({ err }, 'the start failed');
    exit(1);
  }
}

/** Prints every problem of the configuration on stderr and exits 1. */
function configOrExit<C>(Config: ConfigClass<C>): C {
  try {
    return new Config();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}
