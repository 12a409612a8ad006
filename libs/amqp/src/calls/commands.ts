import { randomUUID } from 'node:crypto';
import { notPublished, unavailable } from './call-errors';
import { LIGHT_COMMAND_BYTES, MOST_COMMANDS } from '../messages/command-format';
import { FairQueue } from '@app/runtime/fair-queue';
import { InFlight } from '../publishing/in-flight';
import type { Operation, Request } from '../messages/message-properties';
import type { PublishOutcome } from '../publishing/publisher';
import { QueueConfirms, SILENT } from '../publishing/queue-confirms';

/** A command that waits for its answer. */
export interface AwaitedCommand extends Request {
  /** Correlation id of the message with this command and others. */
  batch?: string;
  /** Whether it was sent in two messages. */
  repeated: boolean;
}

export interface CommandTransport {
  /** Publishes commands of one routing key: one alone, or several in one message. @throws NotWritten */
  publish(commands: readonly AwaitedCommand[], correlationId: string): Promise<PublishOutcome>;
  reject(correlationId: string, error: Error): void;
  /** The consumer of a routing key cannot read several commands in one message. */
  unread(pattern: string): void;
}

/** Bodies in one message. */
const MOST_BYTES = 256 * 1024;
/**
 * A larger body never shares a message or a limit with smaller ones: the broker takes many times as long for it. So small commands, whoever sends
 * them, wait for at most two large messages, which are in front of them on the connection.
 */
const LARGE_BYTES = 16 * 1024;
const MOST_LARGE_UNCONFIRMED = 2;
/** Bodies that wait for a confirm. */
const MOST_WAITING_BYTES = 64 * 1024 * 1024;
/** How long commands of a routing key go alone, after a consumer could not read several in one message. */
const ALONE_MS = 60_000;

/** Only light ones of several API keys share a message. */
type Size = 'light' | 'heavy' | 'large';

/** Commands of one routing key and of like size that are not sent yet. */
interface Route {
  service?: string;
  size: Size;
  waiting: FairQueue<AwaitedCommand>;
  confirms: QueueConfirms;
  /** In milliseconds of `performance.now()`. */
  aloneUntil: number;
}

/**
 * Sends commands whose callers wait. The commands of one iteration of the event loop share a message, and under load those that come while
 * four messages are unconfirmed: the broker then has one log entry, one confirm, one delivery and one ack for all of them.
 *
 * Tenants take turns for their places in the messages. A refusal waits until its whole message is settled, and the consumer lets heavy commands wait
 * for their turn. So these share a message with those of their own tenant only.
 */
export class Commands {
  private readonly asked = new InFlight<AwaitedCommand>();
  private readonly routes: Route[] = [];
  private readonly byPattern = new Map<string, Record<Size, Route>>();
  /** Commands of each shared message that still wait for their answers. */
  private readonly batches = new InFlight<Set<AwaitedCommand>>();
  private waitingBytes = 0;
  private scheduled = false;

  /** @param most commands in one message */
  constructor(
    private readonly transport: CommandTransport,
    private readonly most = MOST_COMMANDS,
  ) {}

  /** Publishes a command at the end of this iteration of the event loop, or with a later confirm. An error reaches the transport under `correlationId`. */
  ask(request: Request): void {
    const { operation, options, correlationId, body } = request;
    if (this.waitingBytes + body.length > MOST_WAITING_BYTES)
      return this.transport.reject(correlationId, unavailable('the broker does not keep up'));
    const command: AwaitedCommand = { ...request, batch: undefined, repeated: false };
    this.asked.set(correlationId, command);
    this.waitingBytes += body.length;
    const isLight = body.length < (operation.lightBytes ?? LIGHT_COMMAND_BYTES) && !operation.changesRows;
    const route = this.routesOf(operation)[body.length > LARGE_BYTES ? 'large' : isLight ? 'light' : 'heavy'];
    route.waiting.add(options.apiKey ?? '', command);
    if (this.isSilent(route)) this.refuseWaiting(route);
    else this.schedule();
  }

  /** Whether a command was sent in two messages: an answer that it was not executed says nothing about the other message. */
  isRepeated(correlationId: string): boolean {
    return this.asked.get(correlationId)?.repeated === true;
  }

  /** The command was answered or given up. */
  forget(correlationId: string): void {
    const command = this.asked.take(correlationId);
    if (command?.batch === undefined) return;
    // An answer shows that one consumer has read the message. Another one may refuse its redelivery.
    const others = this.batches.get(command.batch);
    if (others?.delete(command) && others.size === 0) this.batches.take(command.batch);
  }

  /** The commands that were not sent: the channel was lost or takes nothing for now, and they can wait. */
  takeUnsent(): AwaitedCommand[] {
    const unsent = this.routes.flatMap((route) => this.takeWaiting(route));
    return unsent.filter(({ correlationId }) => this.asked.take(correlationId));
  }

  /** The broker takes messages again after an alarm. */
  restart(): void {
    for (const { confirms } of this.routes) confirms.restart();
  }

  /**
   * An answer came to a whole message: its consumer could not read it, and executed nothing. Commands that wait are sent again, each alone. (Another
   * consumer may have executed them before it was ended; their message ids stay the same.)
   *
   * @returns false when no command of such a message waits
   */
  refused(correlationId: string): boolean {
    const commands = this.batches.take(correlationId);
    if (!commands) return false;
    const [{ operation }] = commands;
    for (const route of Object.values(this.routesOf(operation))) route.aloneUntil = performance.now() + ALONE_MS;
    this.transport.unread(operation.pattern);
    for (const command of commands) {
      command.repeated = true;
      void this.send([command]);
    }
    return true;
  }

  private routesOf({ pattern, service }: Operation): Record<Size, Route> {
    let routes = this.byPattern.get(pattern);
    if (!routes) {
      routes = {
        light: this.newRoute(service, 'light'),
        heavy: this.newRoute(service, 'heavy'),
        large: this.newRoute(service, 'large'),
      };
      this.byPattern.set(pattern, routes);
    }
    return routes;
  }

  private newRoute(service: string | undefined, size: Size): Route {
    const onSilent = () => route.confirms.isSilent && this.refuseWaiting(route);
    const route: Route = {
      service,
      size,
      waiting: new FairQueue(),
      confirms: new QueueConfirms(onSilent, size === 'large' ? MOST_LARGE_UNCONFIRMED : undefined),
      aloneUntil: -Infinity,
    };
    this.routes.push(route);
    return route;
  }

  /** After the sockets of this iteration were read. */
  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      for (const route of this.routes) {
        const isSilent = this.isSilent(route);
        while (!isSilent && !route.waiting.isEmpty && !route.confirms.isFull) void this.sendFrom(route);
        if (isSilent) this.refuseWaiting(route);
      }
    });
  }

  /**
   * Whether the queue confirms nothing: a command that is rare needs no messages of its own to find that out, with an unknown outcome each. Large
   * messages may only be slow, so they say nothing about small ones.
   */
  private isSilent({ confirms, service, size }: Route): boolean {
    if (confirms.isSilent || service === undefined) return confirms.isSilent;
    return this.routes.some(
      (other) => other.service === service && (size === 'large' || other.size !== 'large') && other.confirms.isSilent,
    );
  }

  private refuseWaiting(route: Route): void {
    for (const { correlationId } of this.takeWaiting(route)) this.transport.reject(correlationId, unavailable(SILENT));
  }

  private takeWaiting({ waiting }: Route): AwaitedCommand[] {
    const commands: AwaitedCommand[] = [];
    waiting.take((command) => this.leaveQueue(command) && commands.push(command) > 0);
    return commands;
  }

  private async sendFrom(route: Route): Promise<void> {
    const most = route.aloneUntil > performance.now() ? 1 : this.most;
    const commands: AwaitedCommand[] = [];
    let bytes = 0;
    const accept = (command: AwaitedCommand) => {
      // It was given up meanwhile.
      if (!this.asked.get(command.correlationId)) return this.leaveQueue(command);
      if (commands.length === most || (commands.length > 0 && bytes + command.body.length > MOST_BYTES)) return false;
      bytes += command.body.length;
      commands.push(command);
      return this.leaveQueue(command);
    };
    if (route.size === 'light') route.waiting.take(accept);
    else route.waiting.takeOfOne(accept);
    if (commands.length === 0) return;
    await route.confirms.during(() => this.send(commands));
    if (!route.waiting.isEmpty) this.schedule();
  }

  private leaveQueue({ body }: AwaitedCommand): true {
    this.waitingBytes -= body.length;
    return true;
  }

  private async send(commands: readonly AwaitedCommand[]): Promise<void> {
    const [{ correlationId }] = commands;
    const id = commands.length === 1 ? correlationId : randomUUID();
    if (commands.length > 1) this.batches.set(id, new Set(commands));
    for (const command of commands) command.batch = commands.length > 1 ? id : undefined;
    let error: Error | undefined;
    try {
      error = notPublished(await this.transport.publish(commands, id));
    } catch (notWritten) {
      error = unavailable((notWritten as Error).message);
    }
    if (!error) return;
    this.batches.take(id);
    for (const command of commands) this.transport.reject(command.correlationId, error);
  }
}
