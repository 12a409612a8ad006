import { Module, type DynamicModule } from '@nestjs/common';
import { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { Readiness } from '@app/runtime/readiness';
import { HealthController } from './controllers/health.controller';
import { OperationsController } from './controllers/operations.controller';

@Module({})
export class GatewayModule {
  static with(rabbit: Pick<RabbitClient, 'call'>, readiness: Readiness): DynamicModule {
    return {
      module: GatewayModule,
      controllers: [OperationsController, HealthController],
      providers: [
        { provide: RabbitClient, useValue: rabbit },
        { provide: Readiness, useValue: readiness },
      ],
    };
  }
}
