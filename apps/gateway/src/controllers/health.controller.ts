import { Controller, Get, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply } from 'fastify';
import { Readiness, type ReadinessReport } from '@app/runtime/readiness';

/** The same answers as on the operations port, for load balancers that reach only this one. */
@Controller('health')
export class HealthController {
  constructor(private readonly readiness: Readiness) {}

  @Get('live')
  @RouteConfig({ public: true })
  live() {
    return { status: 'ok' };
  }

  @Get('ready')
  @RouteConfig({ public: true })
  async ready(@Res({ passthrough: true }) reply: FastifyReply): Promise<ReadinessReport> {
    const report = await this.readiness.report();
    if (report.status !== 'ok') void reply.code(503).header('retry-after', '1');
    return report;
  }
}
