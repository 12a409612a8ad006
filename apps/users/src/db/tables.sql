-- The tables that the migrations have made so far, for readers. A test compares them with those of the migrations, and nothing else runs this file.

-- A row is a tenant. The key is a public identifier; a token proves it.
CREATE TABLE api_keys (
  key text COLLATE "C" CONSTRAINT api_keys_pkey PRIMARY KEY,
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  disabled_at timestamptz
);

-- A row is a token of an API key, stored as its hash. A key has several tokens during a rotation.
CREATE TABLE tokens (
  -- Name of the token on the command line; not derived from the secret.
  id text COLLATE "C" CONSTRAINT tokens_pkey PRIMARY KEY,
  api_key text COLLATE "C" NOT NULL CONSTRAINT tokens_api_key_fkey REFERENCES api_keys,
  -- SHA-256 of the token.
  hash bytea NOT NULL CONSTRAINT tokens_hash_key UNIQUE,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz
);
CREATE INDEX tokens_by_api_key ON tokens (api_key);

-- A row is a broker account that may publish for an API key; * stands for every account.
CREATE TABLE publisher_grants (
  api_key text COLLATE "C" NOT NULL CONSTRAINT publisher_grants_api_key_fkey REFERENCES api_keys,
  publisher text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT publisher_grants_pkey PRIMARY KEY (api_key, publisher)
);

-- A row is an organization of one tenant. Other tables refer to both by its number.
CREATE TABLE organizations (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT organizations_pkey PRIMARY KEY,
  api_key text COLLATE "C" NOT NULL CONSTRAINT organizations_api_key_fkey REFERENCES api_keys,
  organization_id text COLLATE "C" NOT NULL,
  CONSTRAINT organizations_api_key_organization_id_key UNIQUE (api_key, organization_id)
);

-- A row is a folder that users were added to, or that documents.set has named.
CREATE TABLE folders (
  organization bigint NOT NULL CONSTRAINT folders_organization_fkey REFERENCES organizations,
  folder_id text COLLATE "C" NOT NULL,
  CONSTRAINT folders_pkey PRIMARY KEY (organization, folder_id)
);

-- A row is a document that users were added to, or that documents.set has set.
CREATE TABLE documents (
  organization bigint NOT NULL CONSTRAINT documents_organization_fkey REFERENCES organizations,
  document_id text COLLATE "C" NOT NULL,
  folder_id text COLLATE "C",
  -- Access type: users who may open it in addition to its own users and the users of its folder.
  access text COLLATE "C" NOT NULL DEFAULT 'organizationPrivate',
  -- Of the last change by documents.set; 0 when it was never set.
  version bigint NOT NULL DEFAULT 0,
  CONSTRAINT documents_pkey PRIMARY KEY (organization, document_id),
  CONSTRAINT documents_folder_fkey FOREIGN KEY (organization, folder_id) REFERENCES folders
);

-- A row holds the details of a user in one organization. The member tables hold the memberships.
CREATE TABLE users (
  -- First in the key, by which an erasure finds the organizations of a user.
  user_id text COLLATE "C" NOT NULL,
  organization bigint NOT NULL CONSTRAINT users_organization_fkey REFERENCES organizations,
  -- Null, here and below: never sent.
  name text,
  email text,
  initial text,
  -- Whether the initial is generated from the name; false once a caller has sent an initial.
  initial_generated boolean NOT NULL,
  -- Of the last change; later changes have greater versions.
  version bigint NOT NULL DEFAULT 0,
  -- Version at which the user last left the organization, with all its folders and documents; -1: never.
  left_version bigint NOT NULL DEFAULT '-1',
  CONSTRAINT users_pkey PRIMARY KEY (user_id, organization)
);
CREATE INDEX users_by_departure ON users (left_version) WHERE left_version >= 0;
CREATE INDEX users_departed ON users (organization, user_id) WHERE left_version >= 0;
-- By hand, here and below: with measured values the planner expects an average organization, which is tiny.
ALTER TABLE users ALTER organization SET (n_distinct = 1);

-- Versions of users, documents and memberships.
CREATE SEQUENCE versions;

-- A row is a user who was added to the organization itself.
CREATE TABLE organization_members (
  organization bigint NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  -- Version of the last addition, here and below. The membership is live while it is greater than "removed" and than left_version of the user.
  added bigint NOT NULL DEFAULT nextval('versions'),
  -- Version of the last removal, here and below; -1: never.
  removed bigint NOT NULL DEFAULT '-1',
  CONSTRAINT organization_members_pkey PRIMARY KEY (organization, user_id),
  CONSTRAINT organization_members_user_fkey FOREIGN KEY (organization, user_id) REFERENCES users (organization, user_id)
);
CREATE INDEX organization_members_ended ON organization_members (removed) WHERE removed >= added;
ALTER TABLE organization_members ALTER organization SET (n_distinct = 1);

-- A row is a user who was added to a folder. This adds the user to nothing else.
CREATE TABLE folder_members (
  organization bigint NOT NULL,
  folder_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  added bigint NOT NULL DEFAULT nextval('versions'),
  removed bigint NOT NULL DEFAULT '-1',
  CONSTRAINT folder_members_pkey PRIMARY KEY (organization, folder_id, user_id),
  CONSTRAINT folder_members_folder_fkey FOREIGN KEY (organization, folder_id) REFERENCES folders,
  CONSTRAINT folder_members_user_fkey FOREIGN KEY (organization, user_id) REFERENCES users (organization, user_id)
);
CREATE INDEX folder_members_by_user ON folder_members (organization, user_id, folder_id);
CREATE INDEX folder_members_ended ON folder_members (removed) WHERE removed >= added;
ALTER TABLE folder_members ALTER organization SET (n_distinct = 1), ALTER folder_id SET (n_distinct = 100);

-- A row is a user who was added to a document. This adds the user to nothing else.
CREATE TABLE document_members (
  organization bigint NOT NULL,
  document_id text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  added bigint NOT NULL DEFAULT nextval('versions'),
  removed bigint NOT NULL DEFAULT '-1',
  CONSTRAINT document_members_pkey PRIMARY KEY (organization, document_id, user_id),
  CONSTRAINT document_members_document_fkey FOREIGN KEY (organization, document_id) REFERENCES documents,
  CONSTRAINT document_members_user_fkey FOREIGN KEY (organization, user_id) REFERENCES users (organization, user_id)
);
CREATE INDEX document_members_by_user ON document_members (organization, user_id, document_id);
CREATE INDEX document_members_ended ON document_members (removed) WHERE removed >= added;
ALTER TABLE document_members ALTER organization SET (n_distinct = 1), ALTER document_id SET (n_distinct = 100);

-- A row is a day on which memberships ended, until they are deleted. About a month of rows.
CREATE TABLE version_times (
  -- In UTC.
  day date CONSTRAINT version_times_pkey PRIMARY KEY,
  -- A version that was drawn on that day. Smaller ones were drawn before.
  version bigint NOT NULL,
  -- The users who left up to this version have no ended membership any more.
  looked_to bigint NOT NULL
);

-- A row is the first answer to an Idempotency-Key. The statement with the effect writes it too. Kept for at least 24 hours.
CREATE TABLE idempotency_keys (
  -- Not a foreign key: every call of a tenant would lock the tenant's row.
  api_key text COLLATE "C" NOT NULL,
  operation text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  -- SHA-256 of the validated request.
  fingerprint bytea NOT NULL,
  -- Data from which, with the request, the answer is made.
  answer json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (api_key, operation, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- A row is an event that is not published yet. Rows live for milliseconds, and reads scan past the dead ones: frequent vacuums.
CREATE TABLE outbox (
  seq bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT outbox_pkey PRIMARY KEY,
  id text COLLATE "C" NOT NULL DEFAULT gen_random_uuid()::text,
  type text COLLATE "C" NOT NULL,
  api_key text COLLATE "C" NOT NULL,
  -- Subject of the event: the organization, or the API key if the event is about one.
  organization_id text COLLATE "C" NOT NULL,
  occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  data json NOT NULL,
  -- W3C trace context of the call that wrote the event, when it had one.
  trace text COLLATE "C"
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);

-- A row is an erasure that is not complete in this service. Names and memberships are hidden from the moment it is there.
CREATE TABLE erasures (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT erasures_pkey PRIMARY KEY,
  api_key text COLLATE "C" NOT NULL,
  user_ids text[] NOT NULL,
  -- Null: all organizations of the API key.
  organization_ids text[],
  -- Also left_version of the users: memberships up to it are erased.
  version bigint NOT NULL,
  -- Time of the database clock at which the users were locked.
  requested_at timestamptz NOT NULL,
  -- Position among the users: what is up to it is done.
  at_user_id text COLLATE "C" NOT NULL DEFAULT '',
  at_organization bigint NOT NULL DEFAULT 0,
  -- Set when all rows are gone.
  walked_at timestamptz,
  -- Set when no transaction runs that began before walked_at: events with a smaller seq may still have data of the users.
  outbox_seq bigint
);
CREATE INDEX erasures_by_key ON erasures (api_key, id);
