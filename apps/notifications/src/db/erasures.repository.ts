import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryPrepared } from '@app/postgres/connections/query-prepared';
import { ORDER } from './erasure.sql';

/** The clock of the users service may be so much behind that of this service's database. */
const CLOCKS_MS = 500;

export interface NewErasure {
  /** Of the event: a repetition has the same. */
  id: string;
  apiKey: string;
  userIds: readonly string[];
  /** Absent: all organizations of the API key. */
  organizationIds?: readonly string[];
  version: number;
  /** Epoch milliseconds of the call, by the clock of the users service's database. */
  upTo: number;
}

@Injectable()
export class ErasuresRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** From its commit on events about the users that are older than the erasure are refused. A repetition changes nothing, also after the end. */
  async order({ id, apiKey, userIds, organizationIds, version, upTo }: NewErasure): Promise<void> {
    await queryPrepared(this.dataSource, ORDER, [id, apiKey, userIds, organizationIds ?? null, version, upTo + CLOCKS_MS]);
  }
}
