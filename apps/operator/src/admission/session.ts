import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';

const SESSION_MS = 12 * 3_600_000;
const COOKIE = 'operator-session';
/** Forms that were sent, and sessions that were ended: far more than operators send while a session lasts. */
const REMEMBERED = 10_000;

/** A signed-in operator. */
export interface Session {
  /** As the operator wrote it at the sign-in: nothing proves it. */
  operator: string;
  /** Sign of this session in its forms. */
  id: string;
}

/**
 * Sessions without a store: the cookie has the name of the operator, the end of the session and a MAC. The key comes from the token, so a new
 * token ends all sessions, and a restart ends none.
 */
export class Sessions {
  private readonly key: Buffer;
  private readonly sent = new LRUCache<string, true>({ max: REMEMBERED, ttl: SESSION_MS });
  private readonly ended = new LRUCache<string, true>({ max: REMEMBERED, ttl: SESSION_MS });

  constructor(token: string) {
    this.key = createHmac('sha256', token).update('sessions of the operator').digest();
  }

  /** Header `Set-Cookie` of a new session. @param isSecure false only for plain HTTP on the loopback address */
  begin(operator: string, isSecure: boolean): string {
    const content = Buffer.from(
      JSON.stringify({ operator, id: randomBytes(16).toString('base64url'), until: Date.now() + SESSION_MS }),
    ).toString('base64url');
    return cookie(`${content}.${this.mac('session', content)}`, SESSION_MS / 1000, isSecure);
  }

  /** Ends a session, until a restart also for those who have a copy of the cookie. @returns header `Set-Cookie` */
  end({ id }: Session, isSecure: boolean): string {
    this.ended.set(id, true);
    return cookie('', 0, isSecure);
  }

  /** The session of a request; undefined without a valid one. @param cookies header `Cookie` */
  find(cookies: string | undefined): Session | undefined {
    for (const one of (cookies ?? '').split(/; */)) {
      const [, content, mac] = /^(?:__Host-)?operator-session=([\w-]+)\.([\w-]+)$/.exec(one) ?? [];
      if (content === undefined || mac === undefined || !this.isMac('session', content, mac)) continue;
      const { operator, id, until } = JSON.parse(Buffer.from(content, 'base64url').toString()) as Session & { until: number };
      if (until > Date.now() && !this.ended.has(id)) return { operator, id };
    }
    return undefined;
  }

  /** Value for one form of this session. It counts once, so that a form that is sent twice acts once. */
  formToken({ id }: Session): string {
    const content = randomBytes(16).toString('base64url');
    return `${content}.${this.mac(id, content)}`;
  }

  /** Takes the value of a form. */
  takeForm({ id }: Session, token: string): 'taken' | 'sent already' | 'foreign' {
    const [content = '', mac = ''] = token.split('.');
    if (!this.isMac(id, content, mac)) return 'foreign';
    if (this.sent.has(token)) return 'sent already';
    this.sent.set(token, true);
    return 'taken';
  }

  private mac(use: string, content: string): string {
    return createHmac('sha256', this.key).update(`${use}\n${content}`).digest('base64url');
  }

  private isMac(use: string, content: string, mac: string): boolean {
    const [wanted, given] = [Buffer.from(this.mac(use, content)), Buffer.from(mac)];
    return wanted.length === given.length && timingSafeEqual(wanted, given);
  }
}

/** With the prefix, browsers accept it only from this host, by HTTPS and for all paths. */
const cookie = (value: string, seconds: number, isSecure: boolean): string =>
  `${isSecure ? '__Host-' : ''}${COOKIE}=${value}; Max-Age=${seconds}; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
