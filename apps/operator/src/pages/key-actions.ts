import type { ListedKey } from '@app/api-keys/api-keys.repository';
import type { AuditedForm } from '../actions/audited';
import type { Keys, Secret } from '../actions/keys';
import { html, type Html } from '../html/html';

export type KeyAction = 'rotate' | 'disable' | 'enable' | 'revoke' | 'grant' | 'withdraw';

interface Described {
  verb: string;
  effect: string;
  /** The field of its form. */
  field?: 'grace' | 'token' | 'publisher';
  act(keys: Keys, form: AuditedForm, key: string, value: string): Promise<Secret | void>;
}

export const ACTIONS: Record<KeyAction, Described> = {
  rotate: {
    verb: 'Rotate',
    effect: 'The key gets a new token. Its other tokens end after the grace.',
    field: 'grace',
    act: (keys, form, key, grace) => keys.rotate(form, key, grace, ''),
  },
  disable: {
    verb: 'Disable',
    effect: 'Calls with the key are answered with 403, at once, until it is enabled again.',
    act: (keys, form, key) => keys.setDisabled(form, key, true),
  },
  enable: {
    verb: 'Enable',
    effect: 'The live tokens of the key are accepted again, within 5 seconds.',
    act: (keys, form, key) => keys.setDisabled(form, key, false),
  },
  revoke: {
    verb: 'Revoke',
    effect:
      'The tokens end at once and for ever. Broker accounts with a grant go on publishing for the key: Disable ends that, too.',
    field: 'token',
    act: (keys, form, key, token) => keys.revoke(form, key, token),
  },
  grant: {
    verb: 'Grant',
    effect:
      'The broker account may publish for the key, without HTTP and without a token. The account * stands for every account.',
    field: 'publisher',
    act: (keys, form, key, publisher) => keys.grant(form, key, publisher),
  },
  withdraw: {
    verb: 'Withdraw',
    effect: 'The broker account may no longer publish for the key.',
    field: 'publisher',
    act: (keys, form, key, publisher) => keys.withdraw(form, key, publisher),
  },
};

/** Lets the browser refuse what the server would refuse after the confirmation. */
export const DURATION = html`pattern="[0-9]{1,12}[smhd]" title="A number with s, m, h or d, such as 90d"`;

/** One form for each action that the key allows now. Each leads to a confirmation. */
export function actionForms({ key, disabled, tokens, publishers }: ListedKey): Html[] {
  const form = (action: KeyAction, fields?: Html) =>
    html`<form class="row" method="post" action="/keys/${encodeURIComponent(key)}/confirm">
      ${fields}<button name="action" value="${action}">${ACTIONS[action].verb}…</button>
    </form>`;
  const select = (id: string, name: string, label: string, options: readonly (readonly [string, string])[]) =>
    html`<span
      ><label for="${id}">${label}</label><br /><select id="${id}" name="${name}">
        ${options.map(([value, text]) => html`<option value="${value}">${text}</option>`)}
      </select></span
    >`;
  const input = (name: string, label: string, more?: Html) =>
    html`<span><label for="${name}">${label}</label><br /><input id="${name}" name="${name}" required ${more} /></span>`;
  const tokenChoice = [['', 'all tokens'] as const, ...tokens.map(({ id }) => [id, id] as const)];
  return [
    form('rotate', input('grace', 'Grace of earlier tokens', html`value="24h" ${DURATION}`)),
    form(disabled ? 'enable' : 'disable'),
    ...(tokens.length > 0 ? [form('revoke', select('revoked', 'token', 'Token', tokenChoice))] : []),
    form('grant', input('publisher', 'Broker account that may publish')),
    ...(publishers.length > 0
      ? [
          form(
            'withdraw',
            select(
              'withdrawn',
              'publisher',
              'Broker account',
              publishers.map((one) => [one, one] as const),
            ),
          ),
        ]
      : []),
  ];
}
