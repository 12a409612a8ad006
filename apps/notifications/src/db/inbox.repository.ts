import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { queryPrepared } from '@app/postgres/connections/query-prepared';
import { BUDGETS, inboxQuery, type Budgets, type InboxFilter } from './inbox.sql';
import { nextOf, storedOf, type PageRow, type PageWindow, type StoredNotification } from './pages.repository';

export interface InboxNotification extends StoredNotification {
  read: boolean;
}

export interface Inbox {
  notifications: InboxNotification[];
  unread: { count: number; more: boolean };
  /** Clock of the database, in epoch milliseconds. */
  asOf: number;
  /** Where the next page begins, unless the page is cut after it was read; absent: there are no more. */
  next?: PageWindow['after'];
  /** Rows that were looked at. */
  rows: number;
}

interface Row extends PageRow {
  count: number;
  more: boolean;
  looked_at: number;
  looked_at_for_page?: number;
  as_of: string;
  read: boolean;
}

@Injectable()
export class InboxRepository {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * The notifications that a user is shown, newest first, with their read state, and the number of unread notifications.
   *
   * @param budgets bounds of the work; others than the default are for tests
   */
  async find(filter: InboxFilter, window: Omit<PageWindow, 'newestFirst'>, budgets = BUDGETS): Promise<Inbox> {
    // The newest are mostly unread.
    let rows = await this.read(filter, window, budgets, budgets.pageAtFirst);
    let looked = lookedAt(rows);
    if (filter.unread && isCut(rows, window.size)) {
      rows = await this.read(filter, window, budgets, budgets.page);
      looked += lookedAt(rows);
    }
    const [{ count, more, as_of: asOf }] = rows;
    const notifications = rows
      .filter(({ id }) => id !== undefined && id !== null)
      .slice(0, window.size)
      .map((row) => ({ ...storedOf(row), read: row.read }));
    return { notifications, unread: { count, more }, asOf: Number(asOf), next: nextOf(rows[0], notifications), rows: looked };
  }

  private read(filter: InboxFilter, window: Omit<PageWindow, 'newestFirst'>, budgets: Budgets, look: number): Promise<Row[]> {
    const { values, ...statement } = inboxQuery(filter, window, budgets, look);
    return queryPrepared<Row>(this.dataSource, statement, values);
  }
}

/** Whether more must be looked through to fill a page. */
const isCut = ([{ found = 0, looked_to: lookedTo }]: Row[], size: number) => found < size && Boolean(lookedTo);

const lookedAt = ([{ looked_at: forCount, looked_at_for_page: forPage = 0 }]: Row[]) => forCount + forPage;
