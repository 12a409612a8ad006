/** A user in the content of a notification. */
export interface KeptUser {
  userId: string;
  name?: string;
  email?: string;
}

/** Content of a notification without the fields that are columns. */
export interface NotificationContent {
  actionUser: KeptUser;
  displayHeadlineMessageTemplate: string;
  displayHeadlineMessageTemplateData?: Record<string, unknown>;
  displayBodyMessage?: string;
  notificationSourceData?: Record<string, unknown>;
  notifyUsers: KeptUser[];
}
