/* The bare MPI ping-pong that the driver is measured against: MPI_Send and MPI_Recv, one warm
 * buffer.
 *
 * Prints "BYTES MICROSECONDS" for each length: the median of rounds. See compare.sh. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 61 };

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    int level, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int lengths[] = {8, 1024, 65536, 1 << 20};
    const int trips[] = {1000, 600, 60, 6};
    for (int k = 0; k < 4; k++) {
        char *bytes = malloc(lengths[k]);
        memset(bytes, 1, lengths[k]);
        double took[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = MPI_Wtime();
            for (int i = 0; i < trips[k]; i++) {
                for (int turn = 0; turn < 2; turn++) {
                    if (rank == turn)
                        MPI_Send(bytes, lengths[k], MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
                    else
                        MPI_Recv(bytes, lengths[k], MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD,
                                 MPI_STATUS_IGNORE);
                }
            }
            took[round] = (MPI_Wtime() - begin) / trips[k] * 1e6;
        }
        qsort(took, ROUNDS, sizeof took[0], by_size);
        if (rank == 0)
            printf("%d %.3f\n", lengths[k], took[ROUNDS / 2]);
        free(bytes);
    }
    MPI_Finalize();
    return 0;
}
