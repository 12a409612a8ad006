import { DocumentEntity } from './document.entity';
import { IdempotencyKeyEntity } from './idempotency-key.entity';
import { Notifications1795132800000 } from './migrations/1795132800000-notifications';
import { NotificationEntity } from './notification.entity';
import { OrganizationEntity } from './organization.entity';
import { RecipientEntity } from './recipient.entity';

export const SCHEMA = 'notifications';

export const ENTITIES = [OrganizationEntity, DocumentEntity, NotificationEntity, RecipientEntity, IdempotencyKeyEntity];

export const MIGRATIONS = [Notifications1795132800000];
