"""Pure layers: functions and modules that know no model."""
