import { SERVICES } from '@app/rabbitmq/topology/topology';
import { LETTER_STATUSES } from './dead-letter';
import { KINDS } from './letter-queue';

export const HELP = `Looks at dead letters, replays them, drops them: commands that nobody waited for and that could not be carried out.

Usage: npm run dead-letters -- <command> [options]

  list              one line for each letter; changes nothing. A value with a question mark: nothing proves it
  show --id ID      everything of a letter, its body as well: the only command that prints one
  replay            publishes letters again as they were, and takes them off the queue once the broker has them
  drop --yes        deletes letters

Which letters; several conditions must all hold:
  --status STATUS   ${LETTER_STATUSES.slice(0, 4).join(', ')}, ...;
                    CRASHED for what the broker gave up by itself
  --operation NAME  routing key, such as notifications.add.v1
  --api-key KEY     tenant
  --publisher NAME  broker account that published it
  --id ID           as list shows it
  --reason TEXT     part of the reason
  --since TIME, --until TIME
                    when it failed first: 2026-01-31T12:00:00Z, or 2h for two hours ago (s, m, h, d)
  --all             every letter; replay and drop need it, or a condition from above
  --limit N         at most this number of letters
  --service NAME    ${SERVICES.join(' or ')}
  --kind KIND       ${KINDS.join(', ')}
  --queue QUEUE     one queue, such as ${SERVICES[0]}.commands.${KINDS[0]}

Options:
  --dry-run         replay, drop: only says what would be done
  --rate N          replay: letters per second (default 100)
  --as ACCOUNT      replay: letters whose origin is unknown may do what this broker account may; every other letter may do what
                    its publisher may. The account of a service may do anything: it needs --id
  --yes             drop: means it
  --audit FILE      replay, drop: appends what was done to FILE as well as printing it
                    (default .local/dead-letters.log where .local exists)
  --json            list, show: the result as one JSON object
  --help            this text

A replay of what was carried out before has no second effect, as long as the letter has a message_id or its body a notificationId.
The broker is that of AMQP_URL, with the full-rights account, else that of a running "npm start". The accounts of the services are
those in TRUSTED_PUBLISHERS: what a letter says of itself counts only when the broker vouches that one of them wrote it.
Exit codes: 0 done, 1 something failed or was left, 2 wrong usage.

Examples:
  npm run dead-letters -- list --since 24h
  npm run dead-letters -- replay --operation notifications.add.v1 --status NOT_FOUND --dry-run
  npm run dead-letters -- drop --id 3f9c0a71 --yes
`;
