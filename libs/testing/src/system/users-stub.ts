import { Controller, Inject, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { AddUsers, AddUsersRequest } from '@app/contracts/users.add';
import { Authenticate, AuthenticateRequest } from '@app/contracts/users.authenticate';
import { Authorize, AuthorizeRequest } from '@app/contracts/users.authorize';
import { Exists, ExistsRequest } from '@app/contracts/users.exists';
import { ContractPipe } from '@app/rabbitmq/server/contract.pipe';
import { DeliveryContext } from '@app/rabbitmq/delivery/delivery-context';
import { PassThroughFilter } from '@app/rabbitmq/server/pass-through.filter';
import { RabbitServer } from '@app/rabbitmq/server/rabbit.server';
import type { RabbitServerOptions } from '@app/rabbitmq/server/rabbit-server-options';

type Handler<Request> = (body: Request, context: DeliveryContext) => unknown;

/** Handlers of the stub, which tests may replace at any time. */
export interface UsersHandlers {
  add: Handler<AddUsersRequest>;
  authenticate: Handler<AuthenticateRequest>;
  exists: Handler<ExistsRequest>;
  authorize?: Handler<AuthorizeRequest>;
}

const HANDLERS = Symbol('handlers');

const USED: readonly string[] = [AddUsers, Authenticate, Authorize, Exists].map(({ pattern }) => pattern);
const UNUSED = ALL_MESSAGES.filter(({ service, pattern }) => service === 'users' && !USED.includes(pattern)).map(
  ({ pattern }) => pattern,
);

@Controller()
class UsersController {
  constructor(@Inject(HANDLERS) private readonly handlers: UsersHandlers) {}

  @MessagePattern(AddUsers.pattern)
  add(@Payload() body: AddUsersRequest, @Ctx() context: DeliveryContext): unknown {
    return this.handlers.add(body, context);
  }

  @MessagePattern(Authenticate.pattern)
  authenticate(@Payload() body: AuthenticateRequest, @Ctx() context: DeliveryContext): unknown {
    return this.handlers.authenticate(body, context);
  }

  @MessagePattern(Authorize.pattern)
  authorize(@Payload() body: AuthorizeRequest, @Ctx() context: DeliveryContext): unknown {
    return this.handlers.authorize?.(body, context);
  }

  /** Required by the handler check; not called. */
  @MessagePattern(UNUSED)
  unused(): never {
    throw new Error('The stub has no such operation.');
  }

  @MessagePattern(Exists.pattern)
  exists(@Payload() body: ExistsRequest, @Ctx() context: DeliveryContext): unknown {
    return this.handlers.exists(body, context);
  }
}

/** A users service without a database: the transport, the pipe and the filter are real, the handlers come from the test. */
export async function startUsersStub(
  options: Omit<RabbitServerOptions, 'service' | 'queues' | 'prefetch'> & Partial<RabbitServerOptions>,
  handlers: UsersHandlers,
): Promise<RabbitServer> {
  @Module({ controllers: [UsersController], providers: [{ provide: HANDLERS, useValue: handlers }] })
  class UsersStubModule {}

  const strategy = new RabbitServer({
    service: 'users',
    queues: ['commands', 'queries'],
    prefetch: { commands: 50, queries: 50 },
    ...options,
  });
  const app = await NestFactory.createMicroservice(UsersStubModule, { strategy, logger: false, abortOnError: false });
  app.useGlobalPipes(new ContractPipe());
  app.useGlobalFilters(new PassThroughFilter());
  await app.listen();
  return strategy;
}
