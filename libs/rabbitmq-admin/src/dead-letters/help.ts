import { SERVICES } from '@app/rabbitmq/topology/topology';
import { LETTER_STATUSES } from './dead-letter';
import { KINDS } from './letter-queue';

export const HELP = `Inspects, replays and drops dead letters: commands without a waiting caller that could not be executed, and events.

Usage: npm run dead-letters -- COMMAND [options]

  list              one line for each dead letter; changes nothing. A question mark marks an unproved value
  show --id ID      all data of a dead letter; the only command that prints the body
  replay            publishes dead letters again, and removes them from the queue once the broker has them
  drop --yes        deletes dead letters

Conditions; all given ones must hold:
  --status STATUS   ${LETTER_STATUSES.slice(0, 4).join(', ')}, ...;
                    CRASHED: it ended the processes that handled it
  --operation NAME  routing key, such as notifications.add.v1
  --api-key KEY     tenant
  --publisher NAME  broker account that published it
  --id ID           id as printed by list
  --request-id ID   id of the request, as in the answer and the logs
  --user ID         userId, or another text, that is a value anywhere in the body; drop also needs --api-key or --id
  --reason TEXT     part of the reason
  --since TIME, --until TIME
                    time of the first failure: 2026-01-31T12:00:00Z, or 2h for two hours ago (s, m, h, d)
  --all             every dead letter; replay and drop need it or a condition from above
  --limit N         at most N dead letters
  --service NAME    ${SERVICES.join(' or ')}
  --kind KIND       ${KINDS.join(', ')}
  --queue QUEUE     one queue, such as ${SERVICES[0]}.commands.${KINDS[0]}

Options:
  --dry-run         replay, drop: only prints what would be done
  --rate N          replay: dead letters per second (default 100)
  --as ACCOUNT      replay: dead letters of unknown origin get the rights of this broker account; all others have the rights of
                    their publisher. The account of a service may do anything: it needs --id
  --yes             drop: confirms the deletion
  --audit FILE      show, replay, drop: appends the audit lines to FILE in addition to printing them, for show on stderr
                    (default .local/dead-letters.log where .local exists)
  --json            list, show: the result as one JSON object; replay, drop: each line is a JSON object, as without it
  --help            this text

A replay can repeat a command that was executed before. Within 24 hours of its first run nothing is stored twice, and nothing is deleted, removed
or erased that came after that run, as long as the dead letter has a message_id. Later the command deletes, removes or erases what is there by
then, and stores a deleted notification again. notifications.update.v1, users.add.v1 and documents.set.v1 overwrite later changes at any time.
docs/integrating.md has the effect of each operation.
The broker is that of AMQP_URL, with the full-rights account, else that of a running "npm start". TRUSTED_PUBLISHERS lists the accounts
of the services: headers of a dead letter count only when the broker has checked that one of these accounts published it.
Exit codes: 0 done, 1 failed or incomplete, 2 wrong usage.

Examples:
  npm run dead-letters -- list --since 24h
  npm run dead-letters -- replay --operation notifications.add.v1 --status NOT_FOUND --dry-run
  npm run dead-letters -- drop --id 3f9c0a71 --yes
`;
