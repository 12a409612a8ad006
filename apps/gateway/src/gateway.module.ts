import { Module, type DynamicModule } from '@nestjs/common';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { Readiness } from '@app/runtime/readiness';
import { DocumentsController } from './controllers/documents.controller';
import { HealthController } from './controllers/health.controller';
import { NotificationsController } from './controllers/notifications.controller';
import { UsersController } from './controllers/users.controller';

@Module({})
export class GatewayModule {
  static with(rabbit: Pick<RabbitClient, 'call'>, readiness: Readiness): DynamicModule {
    return {
      module: GatewayModule,
      controllers: [UsersController, DocumentsController, NotificationsController, HealthController],
      providers: [
        { provide: RabbitClient, useValue: rabbit },
        { provide: Readiness, useValue: readiness },
      ],
    };
  }
}
