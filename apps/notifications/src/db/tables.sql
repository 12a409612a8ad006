-- The tables that the migrations have made so far, for readers. A test compares them with those of the migrations, and nothing else runs this file.

-- A row is an organization of one tenant. Other tables refer to both by its number.
CREATE TABLE organizations (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT organizations_pkey PRIMARY KEY,
  api_key text COLLATE "C" NOT NULL,
  organization_id text COLLATE "C" NOT NULL,
  CONSTRAINT organizations_api_key_organization_id_key UNIQUE (api_key, organization_id)
);

-- A row is a document that a notification has named.
CREATE TABLE documents (
  organization bigint NOT NULL CONSTRAINT documents_organization_fkey REFERENCES organizations,
  document_id text COLLATE "C" NOT NULL,
  CONSTRAINT documents_pkey PRIMARY KEY (organization, document_id)
);

-- A row is one notification for all its users. Table recipients holds the named users; "all" is the flag notify_all.
CREATE TABLE notifications (
  organization bigint NOT NULL,
  -- The caller's notificationId, else the message_id of the command: a redelivered command finds its own row.
  id text COLLATE "C" NOT NULL,
  -- Epoch milliseconds of the database clock, because all writers must use the same clock.
  "timestamp" bigint NOT NULL,
  -- Empty when the notification is deleted. Then the row keeps its id taken for a day.
  document_id text COLLATE "C" NOT NULL,
  location_id text COLLATE "C",
  notify_all boolean NOT NULL,
  -- Size of the content in bytes: pages are limited by it before the content is read.
  size integer NOT NULL,
  -- SHA-256 of the request: it distinguishes a repetition from another notification with the same id.
  fingerprint bytea NOT NULL,
  content json NOT NULL,
  CONSTRAINT notifications_pkey PRIMARY KEY (organization, id)
);
CREATE INDEX notifications_by_document ON notifications (organization, document_id, "timestamp", id);
CREATE INDEX notifications_by_location ON notifications (organization, document_id, location_id, "timestamp", id)
  WHERE location_id IS NOT NULL;
CREATE INDEX notifications_to_all ON notifications (organization, "timestamp", id, document_id) WHERE notify_all;
CREATE INDEX notifications_to_all_by_document ON notifications (organization, document_id, "timestamp", id) WHERE notify_all;
CREATE INDEX notifications_to_all_by_location ON notifications (organization, location_id, "timestamp", id, document_id)
  WHERE notify_all AND location_id IS NOT NULL;
CREATE INDEX notifications_to_all_by_document_location
  ON notifications (organization, document_id, location_id, "timestamp", id) WHERE notify_all AND location_id IS NOT NULL;
CREATE INDEX notifications_by_age ON notifications ("timestamp");
CREATE INDEX notifications_deleted ON notifications ("timestamp") WHERE document_id = '';
-- By hand, here and below: with measured values the planner expects an average organization, which is tiny.
ALTER TABLE notifications ALTER organization SET (n_distinct = 1), ALTER document_id SET (n_distinct = 100),
  ALTER location_id SET (n_distinct = 100);

-- A row is a user that a notification names. It repeats columns, so that each filter with a user is one range of one index.
CREATE TABLE recipients (
  organization bigint NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  "timestamp" bigint NOT NULL,
  notification_id text COLLATE "C" NOT NULL,
  document_id text COLLATE "C" NOT NULL,
  location_id text COLLATE "C",
  CONSTRAINT recipients_pkey PRIMARY KEY (organization, user_id, "timestamp", notification_id)
);
CREATE INDEX recipients_by_document ON recipients (organization, user_id, document_id, "timestamp", notification_id);
CREATE INDEX recipients_by_location ON recipients (organization, user_id, location_id, "timestamp", notification_id)
  WHERE location_id IS NOT NULL;
CREATE INDEX recipients_by_document_location
  ON recipients (organization, user_id, document_id, location_id, "timestamp", notification_id) WHERE location_id IS NOT NULL;
ALTER TABLE recipients ALTER organization SET (n_distinct = 1), ALTER user_id SET (n_distinct = 100),
  ALTER document_id SET (n_distinct = 100), ALTER location_id SET (n_distinct = 100);

-- A row is the first answer to an Idempotency-Key. The statement with the effect writes it too. Kept for at least 24 hours.
CREATE TABLE idempotency_keys (
  api_key text COLLATE "C" NOT NULL,
  operation text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  -- SHA-256 of the validated request.
  fingerprint bytea NOT NULL,
  -- The only part of the answer that varies.
  notification_id text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (api_key, operation, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- A row is an event that is not published yet. Rows live for milliseconds, and reads scan past the dead ones: frequent vacuums.
CREATE TABLE outbox (
  seq bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT outbox_pkey PRIMARY KEY,
  id text COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text,
  type text COLLATE "C" NOT NULL DEFAULT 'notification.added.v1',
  -- Null: the event is about no organization, and api_key has the tenant.
  organization bigint,
  api_key text COLLATE "C",
  -- The notification that it is made of, unless it has a body of its own.
  notification_id text COLLATE "C",
  body json,
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- W3C trace context of the call that wrote the event, when it had one.
  trace text COLLATE "C"
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- A row is a command that deletes notifications, or marks all as read. A redelivery goes on with its moment, so that it changes nothing that came
-- later.
CREATE TABLE deletions (
  api_key text COLLATE "C" NOT NULL,
  -- "delete" or "update", a space, and the message id.
  message_id text COLLATE "C" NOT NULL,
  -- Epoch milliseconds of the database clock.
  moment bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT deletions_pkey PRIMARY KEY (api_key, message_id)
);
CREATE INDEX deletions_by_age ON deletions (created_at);

-- A row is a membership of a user, copied from the users service. It stays for 30 days after the membership has ended: it refuses older events.
-- Events that are older than that are refused by their time.
CREATE TABLE members (
  organization bigint NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  -- organization, folder or document.
  level text COLLATE "C" NOT NULL,
  -- Of the folder or document; empty for the organization.
  id text COLLATE "C" NOT NULL,
  -- Greatest version among the known additions; -1: none is known, 0: one without a version. The membership is live while it is greater than
  -- "removed" and than the version in departures.
  added bigint NOT NULL DEFAULT 0,
  -- Greatest version among the known removals; -1: none.
  removed bigint NOT NULL DEFAULT '-1',
  CONSTRAINT members_pkey PRIMARY KEY (organization, user_id, level, id)
);
CREATE INDEX members_live ON members (organization, user_id, level, id, added) WHERE added > removed;
CREATE INDEX members_ended ON members (removed) WHERE removed >= added;

-- A row is a user whose memberships are all copied: earlier ones were fetched from the users service, later ones arrive as events.
CREATE TABLE complete_members (
  organization bigint NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  CONSTRAINT complete_members_pkey PRIMARY KEY (organization, user_id)
);

-- A row is a user who has left an organization, with all its folders and documents. Later memberships have greater versions. Deleted after 30 days,
-- when it ends no membership any more.
CREATE TABLE departures (
  organization bigint NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  -- Greatest version among all departures of the user.
  version bigint NOT NULL,
  CONSTRAINT departures_pkey PRIMARY KEY (organization, user_id)
);
CREATE INDEX departures_by_version ON departures (version);

-- A row is a day of the last month, from which on a membership ended before it by at least 30 days is deleted.
CREATE TABLE version_times (
  -- In UTC.
  day date CONSTRAINT version_times_pkey PRIMARY KEY,
  -- Greatest version of a removal or a departure that was known on that day. Smaller ones were drawn before.
  version bigint NOT NULL
);

-- A row is the folder and the access type of a document, copied from the users service. Without a row a document is organizationPrivate.
CREATE TABLE document_access (
  organization bigint NOT NULL,
  document_id text COLLATE "C" NOT NULL,
  folder_id text COLLATE "C",
  access text COLLATE "C" NOT NULL,
  -- Of the newest applied event.
  version bigint NOT NULL,
  CONSTRAINT document_access_pkey PRIMARY KEY (organization, document_id)
);
CREATE INDEX document_access_by_folder ON document_access (organization, folder_id, document_id) WHERE folder_id IS NOT NULL;
CREATE INDEX document_access_public ON document_access (organization, document_id) WHERE access = 'public';

-- A row is a user who has marked everything up to a moment as read.
CREATE TABLE read_marks (
  organization bigint NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  -- Notifications up to this timestamp are read, except for those with a valid row in readings. Never later than what may still be committed.
  read_up_to bigint NOT NULL,
  -- The latest moment that was marked. A call with an earlier one, or with the same one again, has no effect.
  asked bigint NOT NULL,
  CONSTRAINT read_marks_pkey PRIMARY KEY (organization, user_id)
);

-- A row is a notification that a user has marked as read or unread by itself.
CREATE TABLE readings (
  organization bigint NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  -- Part of the key, because an id can be used again.
  "timestamp" bigint NOT NULL,
  notification_id text COLLATE "C" NOT NULL,
  read boolean NOT NULL,
  -- read_marks.asked at the time of writing, or -1. With another value there "unread" is void up to the mark.
  asked bigint NOT NULL,
  CONSTRAINT readings_pkey PRIMARY KEY (organization, user_id, "timestamp", notification_id)
);
CREATE INDEX readings_unread ON readings (organization, user_id, asked, "timestamp", notification_id) WHERE NOT read;
CREATE INDEX readings_by_age ON readings ("timestamp", organization);
ALTER TABLE readings ALTER organization SET (n_distinct = 1), ALTER user_id SET (n_distinct = 100),
  ALTER "timestamp" SET (n_distinct = 100);

-- A row is an order of the users service to erase users. When it is complete the row stays for a week, without their ids.
CREATE TABLE erasures (
  -- Of the event user.erased.v1.
  id text COLLATE "C" CONSTRAINT erasures_pkey PRIMARY KEY,
  api_key text COLLATE "C" NOT NULL,
  -- Null: the erasure is complete.
  user_ids text[],
  -- Null: all organizations of the API key.
  organization_ids text[],
  -- Memberships up to it are erased.
  version bigint NOT NULL,
  -- Epoch milliseconds: notifications and read states up to it are erased.
  up_to bigint NOT NULL,
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- people, notifications, or people again.
  stage text COLLATE "C" NOT NULL DEFAULT 'people',
  -- Position of the stage: what is before this organization is done.
  at_organization text COLLATE "C" NOT NULL DEFAULT '',
  -- Position in the organization; null: the organization is done.
  at_notification text COLLATE "C",
  -- Time at which the last notification was looked at.
  walked_at timestamptz,
  -- Set with walked_at: events with a smaller seq may still have data of the users.
  outbox_seq bigint
);
CREATE INDEX erasures_open ON erasures (api_key, received_at) WHERE user_ids IS NOT NULL;
CREATE INDEX erasures_complete ON erasures (received_at) WHERE user_ids IS NULL;

-- A row is a user of an erasure: older events about this user are refused. The only trace that is left, for a week.
CREATE TABLE erased_users (
  api_key text COLLATE "C" NOT NULL,
  -- SHA-256 of the userId.
  user_hash bytea NOT NULL,
  erasure text COLLATE "C" NOT NULL CONSTRAINT erased_users_erasure_fkey REFERENCES erasures ON DELETE CASCADE,
  CONSTRAINT erased_users_pkey PRIMARY KEY (api_key, user_hash, erasure)
);
CREATE INDEX erased_users_by_erasure ON erased_users (erasure);
