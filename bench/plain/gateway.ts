// The plain build, gateway: what the documentation of Nest leads to.
import 'reflect-metadata';
import { createHash } from 'node:crypto';
import { Body, Controller, HttpCode, Inject, Injectable, Module, Post, Req, UseGuards, ValidationPipe } from '@nestjs/common';
import { UnauthorizedException, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ClientProxy, ClientsModule } from '@nestjs/microservices';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { timeout, type Observable } from 'rxjs';
import type { Repository } from 'typeorm';
import { ADD, AddNotificationBody, GET, GetNotificationsBody, type OfTenant } from './contract';
import { ApiKey } from './entities';
import { asClient, database, port } from './settings';

const TIMEOUT_MS = 5000;
const KEPT_MS = 5000;

interface Request {
  headers: Record<string, string | undefined>;
  apiKey: string;
}

@Injectable()
class ApiKeyGuard implements CanActivate {
  private readonly known = new Map<string, { valid: boolean; until: number }>();

  constructor(@InjectRepository(ApiKey) private readonly keys: Repository<ApiKey>) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    const { 'x-svc-api-key': key, 'x-svc-auth-token': token } = request.headers;
    if (!key || !token) throw new UnauthorizedException();
    const id = `${key} ${token}`;
    let verdict = this.known.get(id);
    if (!verdict || verdict.until < Date.now()) {
      const tokenHash = createHash('sha256').update(token).digest('hex');
      verdict = { valid: await this.keys.existsBy({ key, tokenHash }), until: Date.now() + KEPT_MS };
      this.known.set(id, verdict);
    }
    if (!verdict.valid) throw new UnauthorizedException();
    request.apiKey = key;
    return true;
  }
}

@Controller('v1/notifications')
@UseGuards(ApiKeyGuard)
class NotificationsController {
  constructor(@Inject('NOTIFICATIONS') private readonly client: ClientProxy) {}

  @Post('add')
  @HttpCode(200)
  add(@Req() { apiKey }: Request, @Body() { data }: AddNotificationBody): Observable<unknown> {
    return this.send(ADD, { apiKey, request: data });
  }

  @Post('get')
  @HttpCode(200)
  get(@Req() { apiKey }: Request, @Body() { data }: GetNotificationsBody): Observable<unknown> {
    return this.send(GET, { apiKey, request: data });
  }

  private send(pattern: string, message: OfTenant<object>): Observable<unknown> {
    return this.client.send<unknown>(pattern, message).pipe(timeout(TIMEOUT_MS));
  }
}

@Module({
  imports: [
    database(),
    TypeOrmModule.forFeature([ApiKey]),
    ClientsModule.register([{ name: 'NOTIFICATIONS', ...asClient } as const]),
  ],
  controllers: [NotificationsController],
  providers: [ApiKeyGuard],
})
class GatewayModule {}

async function main() {
  const app = await NestFactory.create<NestFastifyApplication>(GatewayModule, new FastifyAdapter(), {
    logger: ['warn', 'error'],
  });
  app.useGlobalPipes(new ValidationPipe({ transform: true, whitelist: true }));
  await app.listen(port(), '127.0.0.1');
}

void main();
