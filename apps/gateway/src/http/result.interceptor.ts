import { Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { map, type Observable } from 'rxjs';
import type { Answer } from '@app/rabbitmq/rabbit.client';
import { JSON_TYPE, resultEnvelope } from './envelope';

const NOTIFICATION_ID = 'x-notification-id';

/** Answers with what a service replied. */
@Injectable()
export class ResultInterceptor implements NestInterceptor<Answer<unknown>, string> {
  intercept(context: ExecutionContext, next: CallHandler<Answer<unknown>>): Observable<string> {
    const reply = context.switchToHttp().getResponse<FastifyReply>();
    return next.handle().pipe(
      map(({ json, headers }) => {
        const notificationId = headers[NOTIFICATION_ID];
        // A header holds ASCII only, an identifier any Unicode.
        if (typeof notificationId === 'string') void reply.header(NOTIFICATION_ID, encodeURIComponent(notificationId));
        void reply.type(JSON_TYPE);
        return resultEnvelope(json);
      }),
    );
  }
}
