import { Entity, PrimaryColumn } from 'typeorm';

/** A user of whom all memberships are in the copy: those of before were asked for, those of later are told by events. */
@Entity('complete_members')
export class CompleteMemberEntity {
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'complete_members_pkey' })
  organization: string;

  @PrimaryColumn('text', { name: 'user_id', collation: 'C', primaryKeyConstraintName: 'complete_members_pkey' })
  userId: string;
}
