import { Module, type DynamicModule } from '@nestjs/common';
import { RabbitClient } from '@app/rabbitmq/rabbit.client';
import { Readiness } from '@app/runtime/readiness';
import { HealthController } from './http/health.controller';
import { NotificationsController } from './notifications.controller';
import { UsersController } from './users.controller';

@Module({})
export class GatewayModule {
  static with(rabbit: Pick<RabbitClient, 'call'>, readiness: Readiness): DynamicModule {
    return {
      module: GatewayModule,
      controllers: [UsersController, NotificationsController, HealthController],
      providers: [
        { provide: RabbitClient, useValue: rabbit },
        { provide: Readiness, useValue: readiness },
      ],
    };
  }
}
