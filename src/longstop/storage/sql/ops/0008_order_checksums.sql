-- Of kind and subject of an order: a changed byte must not lift a pause. NULL in orders of earlier versions.
ALTER TABLE standing_orders ADD COLUMN checksum TEXT;
