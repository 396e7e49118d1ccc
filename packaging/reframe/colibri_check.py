# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks with ReFrame whether what `colibri tune` chose still holds.

    reframe -c packaging/reframe/colibri_check.py -r -S 'ColibriCheck.run_directory=/sw/colibri/RUN'

The test runs in a job of ReFrame's, in which `colibri` starts the ranks itself: as the run was begun, or by the batch
system's launcher. Set what else it needs with -S: `options`, `num_tasks`, `num_tasks_per_node`, `modules`.
"""

import json
import os

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.backends import getlauncher


@rfm.simple_test
class ColibriCheck(rfm.RunOnlyRegressionTest):
    """One check of one run."""

    descr = 'whether the choices of a colibri tuning still hold'
    valid_systems = ['*']
    valid_prog_environs = ['*']
    # The directory of a run of `colibri tune`, on a file system that all nodes share.
    run_directory = variable(str, value=os.environ.get('COLIBRI_RUN', 'colibri-run'))
    # Further words of the command as a shell takes them, with commas: "--launcher,'srun -n {np}',--ranks,64".
    options = variable(typ.List[str], value=[])
    budget = variable(str, value='60s')
    executable = 'colibri'
    keep_files = ['check.json', 'junit.xml']
    tags = {'maintenance', 'performance'}

    @run_before('run')
    def set_command(self):
        # `colibri` is one process, which starts the ranks.
        self.job.launcher = getlauncher('local')()
        self.executable_opts = [
            'check', os.path.abspath(self.run_directory), '--budget', self.budget,
            '--format', 'json', '--junit', 'junit.xml', *self.options, '> check.json',
            '; echo "exit code $?"',
        ]

    @deferrable
    def found(self):
        with open(os.path.join(self.stagedir, 'check.json')) as file:
            return json.load(file)

    @sanity_function
    def holds(self):
        """Harm (4) fails; so does what ended badly (1, 2). What can't be told (3) is left out."""
        code = int(sn.evaluate(sn.extractsingle(r'exit code (\d+)', self.stdout, 1)))
        if code == 3:
            self.skip(sn.evaluate(self.found())['reason'])
        return sn.assert_eq(code, 0, msg=f'colibri check ended with exit code {code}')

    @performance_function('points')
    def points_that_hold(self):
        points = sn.evaluate(self.found())['points']
        return sum(point['verdict'] == 'holds' for point in points)
