// Prepared: pg sends the text of a named statement once for each connection.

export const TABLES = `
  CREATE TABLE api_keys (key text PRIMARY KEY, token_hash text NOT NULL);
  CREATE TABLE notifications (
    id text COLLATE "C" PRIMARY KEY,
    api_key text COLLATE "C" NOT NULL,
    organization_id text COLLATE "C" NOT NULL,
    document_id text COLLATE "C" NOT NULL,
    location_id text COLLATE "C",
    notify_all boolean NOT NULL,
    "timestamp" bigint NOT NULL,
    content json NOT NULL
  );
  CREATE INDEX notifications_by_document ON notifications (api_key, organization_id, document_id, "timestamp", id);
  CREATE TABLE recipients (
    api_key text COLLATE "C" NOT NULL,
    organization_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    "timestamp" bigint NOT NULL,
    notification_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (api_key, organization_id, user_id, "timestamp", notification_id)
  )`;

export const ADD = {
  name: 'add',
  text: `
    WITH stored AS (
      INSERT INTO notifications (id, api_key, organization_id, document_id, location_id, notify_all, "timestamp", content)
      VALUES ($1, $2, $3, $4, $5, $6, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, $7::text::json)
      RETURNING "timestamp"
    )
    INSERT INTO recipients (api_key, organization_id, user_id, "timestamp", notification_id)
    SELECT $2, $3, u.user_id, stored."timestamp", $1 FROM stored, unnest($8::text[]) AS u (user_id)`,
};

export const GET = {
  name: 'get',
  text: `
    SELECT n.id, n."timestamp", n.document_id, n.location_id, n.content
    FROM recipients r JOIN notifications n ON n.id = r.notification_id
    WHERE r.api_key = $1 AND r.organization_id = $2 AND r.user_id = $3
    ORDER BY r."timestamp" DESC, r.notification_id DESC LIMIT $4`,
};

export const FIND_KEY = { name: 'find-key', text: 'SELECT 1 FROM api_keys WHERE key = $1 AND token_hash = $2' };
